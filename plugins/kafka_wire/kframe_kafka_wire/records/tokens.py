"""Delegation tokens in ZooKeeper as Kafka stores them (Kafka 3.9 ``DelegationTokenManagerZk``, KIP-48)."""

from __future__ import annotations

import base64
import hmac
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kframe.plugin.server import token_hmac
from kframe_kafka_wire.records.credentials import (
    ScramCredential,
    TokenLookup,
    no_tokens,
    token_credential,
)
from kframe_kafka_wire.records.principals import Principal, parse_principal
from kframe_kafka_wire.records.store import (
    Records,
    RecordWriter,
    attempts,
    decode_record,
    desanitized,
    sanitized,
)

_FOLDER: Final = "/delegation_token/tokens"
_CHANGE: Final = "/delegation_token/token_changes/token_change_"
_VERSION: Final = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token. Times are milliseconds since 1970."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    latest_ms: int
    """The latest expiry time after a renewal."""

    def belongs_to(self, principal: Principal) -> bool:
        """Whether this is the owner, the requester or a renewer (``TokenInformation.ownerOrRenewer``)."""
        return principal in (self.owner, self.requester, *self.renewers)

    def is_expired(self, now_ms: int) -> bool:
        """Whether it has expired."""
        return min(self.latest_ms, self.expires_ms) < now_ms


class Tokens:
    """The tokens of a cluster. Calls raise StoreError."""

    def __init__(
        self, secret: str, max_lifetime_ms: int, renewal_ms: int, now_ms: Callable[[], int] | None = None
    ) -> None:
        """``secret`` is the same on all brokers. A token expires after ``renewal_ms`` unless renewed, and always after
        ``max_lifetime_ms``."""
        self._secret = secret.encode()
        self._max_lifetime_ms = max_lifetime_ms
        self._renewal_ms = renewal_ms
        self._salt = uuid.uuid4().bytes
        self.now_ms = now_ms if now_ms is not None else lambda: time.time_ns() // 1_000_000

    def hmac_of(self, token_id: str) -> bytes:
        """The secret of a token."""
        return token_hmac(self._secret, token_id)

    def read_all(self, records: Records) -> Iterator[Token]:
        """All readable tokens, sorted by id."""
        for token_id in sorted(records.read_record_names(_FOLDER)):
            token = self.read(records, token_id)
            if token is not None:
                yield token

    def read(self, records: Records, token_id: str) -> Token | None:
        """A token. None if it does not exist or cannot be read."""
        if not token_id or "/" in token_id:
            return None
        return _decode(records.read_record(f"{_FOLDER}/{token_id}"))

    def find(self, records: Records, secret: bytes) -> Token | None:
        """The token with this secret."""
        tokens = self.read_all(records)
        return next((token for token in tokens if hmac.compare_digest(self.hmac_of(token.token_id), secret)), None)

    def create(
        self,
        writer: RecordWriter,
        owner: Principal,
        requester: Principal,
        renewers: tuple[Principal, ...],
        max_lifetime_ms: int,
    ) -> Token:
        """Store a new token. ``max_lifetime_ms`` limits its lifetime; 0 or less selects the longest."""
        now_ms = self.now_ms()
        latest_ms = now_ms + (
            self._max_lifetime_ms if max_lifetime_ms <= 0 else min(max_lifetime_ms, self._max_lifetime_ms)
        )
        token_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        expires_ms = min(latest_ms, now_ms + self._renewal_ms)
        token = Token(token_id, owner, requester, renewers, now_ms, expires_ms, latest_ms)
        _write(writer, token)
        return token

    def extend(self, writer: RecordWriter, token: Token, period_ms: int, *, renewed: bool) -> int:
        """Let a token expire after ``period_ms``, but not after its latest expiry time. Return the expiry time.

        ``renewed``: a negative period selects the renewal period.
        """
        period_ms = self._renewal_ms if renewed and period_ms < 0 else period_ms
        expires_ms = min(token.latest_ms, self.now_ms() + period_ms)
        _write(writer, replace(token, expires_ms=expires_ms))
        return expires_ms

    def delete(self, writer: RecordWriter, token: Token) -> None:
        """Delete a token. Raises StoreError if concurrent writes continue."""
        path = f"{_FOLDER}/{token.token_id}"
        for stored in attempts(writer, path):
            if stored is None or writer.delete_record(path, stored[1]):
                break
        writer.append_record(_CHANGE, token.token_id.encode())

    def delete_expired(self, records: Records, writer: RecordWriter) -> int:
        """Delete expired tokens, which is the controller's task. Return their number."""
        expired = [token for token in self.read_all(records) if token.is_expired(self.now_ms())]
        for token in expired:
            self.delete(writer, token)
        return len(expired)

    def credential(self, mechanism: str, token_id: str) -> ScramCredential:
        """The SCRAM credential of a token."""
        return token_credential(mechanism, self.hmac_of(token_id), self._salt)


def token_lookup(tokens: Tokens | None, records: Records) -> TokenLookup:
    """A lookup of the owner and the credential of a token for logins. A lookup raises StoreError."""
    if tokens is None:
        return no_tokens

    def find(mechanism: str, token_id: str) -> tuple[Principal, ScramCredential | None]:
        token = tokens.read(records, token_id)
        if token is None or token.is_expired(tokens.now_ms()):
            return no_tokens(mechanism, token_id)
        return replace(token.owner, by_token=True), tokens.credential(mechanism, token_id)

    return find


def tokens_of(config: Mapping[str, str]) -> Tokens | None:
    """The tokens by Kafka's keys; None without ``delegation.token.secret.key``."""
    secret = config.get("delegation.token.secret.key", "") or config.get("delegation.token.master.key", "")
    if not secret:
        return None
    max_lifetime_ms = int(config.get("delegation.token.max.lifetime.ms", "604800000"))
    return Tokens(secret, max_lifetime_ms, int(config.get("delegation.token.expiry.time.ms", "86400000")))


def _write(writer: RecordWriter, token: Token) -> None:
    """Store a token and notify all brokers. Raises StoreError."""
    path, data = f"{_FOLDER}/{token.token_id}", _encode(token)
    for stored in attempts(writer, path):
        if writer.write_record(path, data, None if stored is None else stored[1]):
            writer.append_record(_CHANGE, token.token_id.encode())
            return


def _encode(token: Token) -> bytes:
    fields = {
        "version": _VERSION,
        "owner": sanitized(str(token.owner)),
        "tokenRequester": sanitized(str(token.requester)),
        "renewers": [sanitized(str(renewer)) for renewer in token.renewers],
        "issueTimestamp": token.issued_ms,
        "maxTimestamp": token.latest_ms,
        "expiryTimestamp": token.expires_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _decode(data: bytes | None) -> Token | None:
    """Decode a stored token; None for a malformed record."""
    fields: Mapping[str, Any] = decode_record(data)
    try:
        owner = _principal(fields["owner"])
        requester = _principal(fields["tokenRequester"]) if fields["version"] >= _VERSION else owner
        renewers = tuple(_principal(renewer) for renewer in fields["renewers"])
        times = (int(fields[key]) for key in ("issueTimestamp", "expiryTimestamp", "maxTimestamp"))
        return Token(str(fields["tokenId"]), owner, requester, renewers, *times)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _principal(text: str) -> Principal:
    return parse_principal(desanitized(text) or "")
