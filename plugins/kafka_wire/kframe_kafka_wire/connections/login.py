"""The client side of a SASL login: SaslHandshake 1, then SaslAuthenticate 2 until it is complete.

PLAIN follows RFC 4616. SCRAM follows RFC 5802 with SHA-256 or SHA-512, without channel binding, as in Kafka. Errors
contain neither passwords nor derived values.

The code is kframe's own: pure-sasl, which kazoo needs for ZooKeeper, has no SCRAM. scramp applies SASLprep to
passwords, which Kafka does not.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
from collections.abc import Callable, Generator
from typing import Final, TypeAlias

from kframe.plugin.wire import request_header, unsigned_varint
from kframe_kafka_wire.listeners.security import Credentials
from kframe_kafka_wire.protocol.errors import CodecError, WireError
from kframe_kafka_wire.protocol.shapes import Cursor, read_varint

_HANDSHAKE: Final = 17
_AUTHENTICATE: Final = 36
#: Sends a request and returns the reply, both without size.
SendRequest: TypeAlias = Callable[[bytes], bytes]
#: A mechanism: yields the client's messages, and receives the server's.
_Mechanism: TypeAlias = Generator[bytes, bytes, None]
#: A limit against servers that waste CPU. Kafka accepts 4,096 to 16,384 iterations by default.
_ITERATIONS_MAX: Final = 1_000_000


class LoginRefused(WireError):
    """The broker refuses the login."""


def authenticate(credentials: Credentials, client_id: str, send_request: SendRequest) -> None:
    """Log in. Raises LoginRefused if the broker refuses, and WireError if it cannot prove that it knows the
    password."""
    mechanism = credentials.mechanism
    header = request_header(1, _HANDSHAKE, 1, -1, client_id)
    reply = send_request(header + struct.pack(">h", len(mechanism)) + mechanism.encode())
    if len(reply) < 10 or reply[:4] != struct.pack(">i", -1):
        raise WireError("no response to a SASL handshake: is SASL spoken on this port?")
    (error,) = struct.unpack_from(">h", reply, 4)
    if error:
        raise LoginRefused(f"the broker does not offer {mechanism} (error {error})")
    steps = _plain(credentials) if mechanism == "PLAIN" else _scram(credentials)
    message = next(steps)
    try:
        while True:
            message = steps.send(_authenticate(message, mechanism, client_id, send_request))
    except StopIteration:
        return


def _authenticate(message: bytes, mechanism: str, client_id: str, send_request: SendRequest) -> bytes:
    """Send a message by SaslAuthenticate 2. Return the server's."""
    header = request_header(2, _AUTHENTICATE, 2, -1, client_id)
    reply = send_request(header + unsigned_varint(len(message) + 1) + message + b"\x00")
    try:
        if reply[:5] != struct.pack(">ib", -1, 0):
            raise WireError("no response to a SASL login")
        (error,) = struct.unpack_from(">h", reply, 5)
        cursor = Cursor(reply, 7)
        text, token = _compact_bytes(cursor), _compact_bytes(cursor)
    except (struct.error, CodecError):
        raise WireError("a response to a SASL login that breaks off") from None
    if error:
        raise LoginRefused(f"the broker refuses the login by {mechanism}: {text[:200].decode(errors='replace')!r}")
    return token


def _plain(credentials: Credentials) -> _Mechanism:
    yield f"\0{credentials.username}\0{credentials.password}".encode()


def _scram(credentials: Credentials) -> _Mechanism:
    algorithm = credentials.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    nonce = secrets.token_urlsafe(24)
    user = credentials.username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    server_first = (yield f"n,,{first}".encode()).decode(errors="replace")
    attributes = dict(attribute.split("=", 1) for attribute in server_first.split(",") if "=" in attribute)
    try:
        salt, iterations, full_nonce = (
            base64.b64decode(attributes["s"], validate=True),
            int(attributes["i"]),
            attributes["r"],
        )
    except (KeyError, ValueError):
        raise WireError("a SCRAM challenge that is none") from None
    if not full_nonce.startswith(nonce) or full_nonce == nonce or not 0 < iterations <= _ITERATIONS_MAX:
        raise WireError("a SCRAM challenge that is not for us")
    salted = hashlib.pbkdf2_hmac(algorithm, credentials.password.encode(), salt, iterations)
    last = f"c=biws,r={full_nonce}"
    signed = f"{first},{server_first},{last}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), signed, algorithm)
    proof = bytes(key_byte ^ other for key_byte, other in zip(client_key, signature, strict=True))
    server_last = yield f"{last},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", algorithm), signed, algorithm)
    if not hmac.compare_digest(server_last.partition(b",")[0], b"v=" + base64.b64encode(expected)):
        raise WireError("the broker does not know the password that it has checked")


def _compact_bytes(cursor: Cursor) -> bytes:
    """Compact bytes or a compact string; empty if null. Raises CodecError."""
    length = max(read_varint(cursor) - 1, 0)
    start = cursor.skip(length)
    return cursor.data[start : start + length]
