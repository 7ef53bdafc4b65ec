"""Users with passwords or bearer tokens, from files that have only hashes of them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Final

from kframe.plugin import InputError
from kframe.plugin.settings import parse_whole, short_repr

#: Cost of scrypt (RFC 7914): 16 MiB and tens of milliseconds a password.
_COST: Final = 2**14
_BLOCK: Final = 8
_SALT_BYTES: Final = 16
_FILE_BYTES_MAX: Final = 1 << 20
#: Most verified passwords that are cached, by a keyed hash: the requests of a page compute scrypt once.
_VERIFIED_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Identity:
    """The user of a request, and how they logged in: ``none``, ``basic``, ``bearer``, ``certificate`` or ``oidc``."""

    name: str
    method: str
    session: str = ""
    """The session that a cookie names, if the login has one."""


#: The user of a console without logins, which only this machine reaches.
LOCAL: Final = Identity("local", "none")


def password_line(name: str, password: str) -> str:
    """The line of a users file for a user. Raises InputError for a name that no line can have."""
    if not name or ":" in name or not name.isprintable():
        raise InputError("user", short_repr(name), "a name without colons")
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"{name}:scrypt:{_COST}:{salt.hex()}:{_scrypt(password, salt, _COST).hex()}"


def token_line(name: str, token: str) -> str:
    """The line of a tokens file for a token."""
    return f"{name}:sha256:{hashlib.sha256(token.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class _Password:
    cost: int
    salt: bytes
    digest: bytes


@dataclass(slots=True)
class StoredCredentials:
    """The users and tokens of a console."""

    passwords: dict[str, _Password] = field(default_factory=dict)
    tokens: dict[bytes, str] = field(default_factory=dict)
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _verified: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @staticmethod
    def read(users: Path | None, tokens: Path | None) -> StoredCredentials:
        """The credentials in a users file and a tokens file. Raises InputError, which names file and line."""
        credentials = StoredCredentials()
        for location, fields in _lines(users):
            if len(fields) != 5 or fields[1] != "scrypt":
                raise InputError(location, "a malformed line", "NAME:scrypt:COST:SALT:HASH, as --new-user prints it")
            cost = parse_whole(fields[2], 2**20)
            salt, digest = _bytes(location, fields[3]), _bytes(location, fields[4])
            if cost is None or cost < 2 or cost & (cost - 1) or not salt or len(digest) != 64:
                raise InputError(location, "a malformed line", "NAME:scrypt:COST:SALT:HASH, as --new-user prints it")
            credentials.passwords[fields[0]] = _Password(cost, salt, digest)
        for location, fields in _lines(tokens):
            if len(fields) != 3 or fields[1] != "sha256" or len(digest := _bytes(location, fields[2])) != 32:
                raise InputError(location, "a malformed line", "NAME:sha256:HASH of the token")
            credentials.tokens[digest] = fields[0]
        return credentials

    def authenticate(self, authorization: str) -> Identity | None:
        """The user of a header ``Authorization``; None if it is not valid. It computes for tens of milliseconds."""
        scheme, _, value = authorization.partition(" ")
        if scheme.lower() == "bearer":
            name = self.tokens.get(hashlib.sha256(value.strip().encode()).digest())
            return None if name is None else Identity(name, "bearer")
        if scheme.lower() != "basic":
            return None
        try:
            name, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return Identity(name, "basic") if colon and self._is_valid_password(name, password) else None

    def _is_valid_password(self, name: str, password: str) -> bool:
        key = hmac.digest(self._key, f"{name}:{password}".encode(), "sha256")
        with self._lock:
            if key in self._verified:
                return True
        stored = self.passwords.get(name)
        # An unknown name takes as long, so that response times do not reveal names.
        digest = _scrypt(
            password, b"unknown" if stored is None else stored.salt, _COST if stored is None else stored.cost
        )
        if stored is None or not hmac.compare_digest(digest, stored.digest):
            return False
        with self._lock:
            self._verified[key] = None
            if len(self._verified) > _VERIFIED_MAX:
                self._verified.popitem(last=False)
        return True


def _scrypt(password: str, salt: bytes, cost: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=cost, r=_BLOCK, p=1, maxmem=256 * cost * _BLOCK, dklen=64)


def _lines(path: Path | None) -> Iterator[tuple[str, list[str]]]:
    """The file and line number, and the fields, of each line that is not empty or a comment."""
    if path is None:
        return
    try:
        if path.stat().st_size > _FILE_BYTES_MAX:
            raise InputError(str(path), "a large file", f"at most {_FILE_BYTES_MAX} bytes")
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(str(path), str(problem), "a readable text file") from problem
    names = set()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.strip().split(":")
        if fields[0] in names or not fields[0]:
            raise InputError(f"{path}:{number}", short_repr(fields[0]), "each name once")
        names.add(fields[0])
        yield f"{path}:{number}", fields


def _bytes(location: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as problem:
        raise InputError(location, "a malformed line", "hexadecimal digits") from problem
