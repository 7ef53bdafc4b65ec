"""SCRAM credentials: Kafka's format in ``/config/users``, and their derivation from passwords (RFC 5802 section 3)."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kframe_kafka_wire.records.principals import Principal
from kframe_kafka_wire.records.store import Records, settings_of_user

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16384


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The stored credential of a password."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


#: Returns the credential of a user for a mechanism, or None.
ScramLookup = Callable[[str, str], ScramCredential | None]
#: Returns the owner of a delegation token, and its credential for a mechanism or None if it does not exist.
TokenLookup = Callable[[str, str], tuple[Principal, ScramCredential | None]]


def no_tokens(_mechanism: str, _token_id: str) -> tuple[Principal, None]:
    """The lookup without delegation tokens."""
    return Principal(""), None


def scram_lookup(records: Records) -> ScramLookup:
    """Credentials in ``/config/users``, as ``kafka-configs --entity-type users`` writes them."""

    def find(mechanism: str, user: str) -> ScramCredential | None:
        text = settings_of_user(records, user).get(mechanism)
        return None if text is None else parse_credential(text)

    return find


def parse_credential(text: str) -> ScramCredential | None:
    """Parse ``salt=...,stored_key=...,server_key=...,iterations=...`` as Kafka writes it. None for any other text."""
    values = dict(attribute.split("=", 1) for attribute in text.split(",") if "=" in attribute)
    try:
        salt, stored, server = (
            base64.b64decode(values[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored, server, int(values["iterations"]))
    except (KeyError, ValueError):
        return None


def make_credential(mechanism: str, password: str, salt: bytes, iterations: int = ITERATIONS_MIN) -> ScramCredential:
    """The credential of a password (RFC 5802 section 3)."""
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def token_credential(mechanism: str, secret: bytes, salt: bytes) -> ScramCredential:
    """The credential of a delegation token: its password is its HMAC in base64."""
    return make_credential(mechanism, base64.b64encode(secret).decode(), salt)


def credential_of(mechanism: str, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential of a salted password."""
    name = HASHES[mechanism]
    stored = hashlib.new(name, hmac.digest(salted_password, b"Client Key", name)).digest()
    return ScramCredential(salt, stored, hmac.digest(salted_password, b"Server Key", name), iterations)


def credential_text(credential: ScramCredential) -> str:
    """The reverse of ``parse_credential``."""
    parts = {"salt": credential.salt, "stored_key": credential.stored_key, "server_key": credential.server_key}
    texts = [f"{name}={base64.b64encode(value).decode()}" for name, value in parts.items()]
    return ",".join([*texts, f"iterations={credential.iterations}"])
