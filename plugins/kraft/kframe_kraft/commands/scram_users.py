"""SCRAM users by the text of ``--add-scram`` (Kafka 4.4 ``ScramParser``)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
from collections.abc import Iterable
from typing import Final

import click

from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import MetadataLevel, scram

_OPTION: Final = "--add-scram"
_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_KEYS: Final = frozenset({"name", "password", "iterations", "salt", "saltedpassword"})
_SALT_BYTES: Final = 32


def scram_users(texts: Iterable[str], level: int) -> list[records.UserScramCredentialRecord]:
    """The credential of each text, ``MECHANISM=[name=USER,password=TEXT]``.

    ``level`` is that of ``metadata.version``. Messages do not have the texts, which contain passwords. Raises
    UsageError for malformed and repeated ones, and below the level of SCRAM.
    """
    users = [_user(text) for text in texts]
    names = {(user.name, user.mechanism) for user in users}
    if len(names) < len(users):
        raise click.UsageError(f"{_OPTION}: found a user twice, expected each mechanism of a user once")
    if users and level < MetadataLevel.SCRAM:
        raise click.UsageError(f"{_OPTION}: found metadata.version {level}, expected {MetadataLevel.SCRAM} or above")
    return users


def _user(text: str) -> records.UserScramCredentialRecord:
    mechanism_name, _, content = map(str.strip, text.partition("="))
    mechanism = _MECHANISMS.get(mechanism_name)
    if mechanism is None:
        raise click.UsageError(f"{_OPTION}: found another mechanism, expected {' or '.join(_MECHANISMS)}")
    if not (content.startswith("[") and content.endswith("]")):
        raise click.UsageError(f"{_OPTION}: found no brackets, expected {mechanism_name}=[name=USER,password=TEXT]")
    given = _values(content[1:-1])
    name = given.get("name", "")
    if not name or ("password" in given) == ("saltedpassword" in given):
        raise click.UsageError(f"{_OPTION}: expected name, and either password or saltedpassword")
    if "saltedpassword" in given and "salt" not in given:
        raise click.UsageError(f"{_OPTION}: found saltedpassword without salt, expected both")
    iterations = _iterations(given.get("iterations", str(scram.ITERATIONS_MIN)))
    salt = _decoded("salt", given["salt"]) if "salt" in given else secrets.token_bytes(_SALT_BYTES)
    if "saltedpassword" in given:
        salted = _decoded("saltedpassword", given["saltedpassword"])
    else:
        salted = hashlib.pbkdf2_hmac(scram.MECHANISMS[mechanism], given["password"].encode(), salt, iterations)
    return scram.credential(scram.ScramUpsertion(name, mechanism, iterations, salt, salted))


def _values(content: str) -> dict[str, str]:
    """The values by key. A value may be in double quotes."""
    given: dict[str, str] = {}
    for part in content.split(","):
        key, separator, value = part.strip().partition("=")
        if not separator or key not in _KEYS or key in given:
            keys = ", ".join(sorted(_KEYS))
            raise click.UsageError(f"{_OPTION}: expected KEY=VALUE,... with each of {keys} at most once")
        is_quoted = len(value) >= 2 and value.startswith('"') and value.endswith('"')
        given[key] = value[1:-1] if is_quoted else value
    return given


def _iterations(text: str) -> int:
    low, high = scram.ITERATIONS_MIN, scram.ITERATIONS_MAX
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise click.UsageError(f"{_OPTION}: iterations: found {text[:20]!r}, expected {low} to {high}")
    return int(text)


def _decoded(key: str, text: str) -> bytes:
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if not decoded:
        raise click.UsageError(f"{_OPTION}: {key}: found no base64, expected base64 of at least one byte")
    return decoded
