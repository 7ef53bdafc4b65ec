"""The server's side of SASL: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 4616, RFC 5802, Kafka's own limits).

The code is kframe's own: pure-sasl has no server. scramp refuses the extension ``tokenauth`` of delegation tokens and
authorization ids, which Kafka accepts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from kframe_kafka_wire.records.credentials import (
    HASHES,
    ITERATIONS_MIN,
    ScramCredential,
    ScramLookup,
    TokenLookup,
    no_tokens,
)
from kframe_kafka_wire.records.principals import Principal

_WRONG: Final = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
_WRONG_AUTHORIZATION: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
_NAME: Final = re.compile(r"(?:[^=,\0]|=2C|=3D)+")
_FIRST: Final = re.compile(r"n,(?:a=([^,]*))?,(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,(.*))?)", re.DOTALL)
_FINAL: Final = re.compile(
    r"(c=([A-Za-z0-9+/=]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,[^p].*)?),p=([A-Za-z0-9+/=]+)", re.DOTALL
)


class SaslError(Exception):
    """The login failed. The text may be shown to the client."""


class Exchange(Protocol):
    """A login in progress."""

    principal: Principal | None
    """The principal, after a successful login."""

    def evaluate_response(self, token: bytes) -> bytes:
        """Process the client's next token, and return the server's. Raises SaslError."""


class PlainExchange:
    """PLAIN: one token with name and password. Users are the ``user_NAME`` options of the login module."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self.principal: Principal | None = None

    def evaluate_response(self, token: bytes) -> bytes:
        """Check the password in constant time. Raises SaslError."""
        try:
            parts = token.decode().split("\0")
        except UnicodeDecodeError:
            raise SaslError("Invalid SASL/PLAIN response: not UTF-8") from None
        if len(parts) != 3 or not parts[1] or not parts[2]:
            raise SaslError("Invalid SASL/PLAIN response: expected an authorization id, a username and a password")
        authorization, user, password = parts
        expected = self._options.get(f"user_{user}")
        matches = hmac.compare_digest((expected or secrets.token_hex(8)).encode(), password.encode())
        if expected is None or not matches:
            raise SaslError("Authentication failed: Invalid username or password")
        if authorization not in ("", user):
            raise SaslError(_WRONG_AUTHORIZATION)
        self.principal = Principal(user)
        return b""


class ScramExchange:
    """SCRAM. Two tokens prove the password of a user or of a delegation token."""

    def __init__(
        self,
        mechanism: str,
        lookup: ScramLookup,
        tokens: TokenLookup = no_tokens,
        nonce: Callable[[], str] = secrets.token_urlsafe,
    ) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism]
        self._lookup = lookup
        self._tokens = tokens
        self._nonce = nonce
        self._claimed_principal = Principal("")
        self._credential: ScramCredential | None = None
        self._auth_message = b""
        self._expected_nonce = ""
        self.principal: Principal | None = None

    def evaluate_response(self, token: bytes) -> bytes:
        """The first token names the user, the second proves the password. Raises SaslError."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise SaslError("Invalid SCRAM message: not UTF-8") from None
        return self._challenge(text) if self._credential is None else self._proof(text, self._credential)

    def _challenge(self, text: str) -> bytes:
        match = _FIRST.fullmatch(text)
        if match is None or _NAME.fullmatch(match[3]) is None:
            raise SaslError("Invalid SCRAM client first message")
        user = match[3].replace("=2C", ",").replace("=3D", "=")
        by_token = bool(match[5]) and "tokenauth=true" in match[5].split(",")
        if by_token:
            owner, credential = self._tokens(self._mechanism, user)
        else:
            owner, credential = Principal(user), self._lookup(self._mechanism, user)
        if match[1] and match[1] != match[3]:
            raise SaslError(_WRONG_AUTHORIZATION)
        if credential is None or credential.iterations < ITERATIONS_MIN:
            raise SaslError(_WRONG.format(self._mechanism))
        self._credential, self._claimed_principal = credential, owner
        self._expected_nonce = match[4] + self._nonce()
        salt = base64.b64encode(credential.salt).decode()
        first = f"r={self._expected_nonce},s={salt},i={credential.iterations}"
        self._auth_message = f"{match[2]},{first}".encode()
        return first.encode()

    def _proof(self, text: str, credential: ScramCredential) -> bytes:
        match = _FINAL.fullmatch(text)
        if match is None or match[3] != self._expected_nonce:
            raise SaslError("Invalid SCRAM client final message")
        try:
            binding, proof = base64.b64decode(match[2], validate=True), base64.b64decode(match[4], validate=True)
        except binascii.Error:
            raise SaslError("Invalid SCRAM client final message") from None
        auth_message = self._auth_message + b"," + match[1].encode()
        signature = hmac.digest(credential.stored_key, auth_message, self._hash)
        key = bytes(a ^ b for a, b in zip(signature, proof, strict=False))
        matches = hmac.compare_digest(hashlib.new(self._hash, key).digest(), credential.stored_key)
        if not binding.startswith(b"n,") or len(proof) != len(signature) or not matches:
            raise SaslError(_WRONG.format(self._mechanism))
        self.principal = self._claimed_principal
        return b"v=" + base64.b64encode(hmac.digest(credential.server_key, auth_message, self._hash))
