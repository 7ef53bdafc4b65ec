"""Records in ZooKeeper that Kafka's brokers also write. They are credentials, ACLs, quotas and the cluster id."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote, unquote

import msgspec

from kframe.plugin import KframeError, StoreError
from kframe.plugin.cluster import Registration
from kframe.plugin.znodes import BROKER_DECODER, endpoints_of, rack_of

#: The name of the default entity, which applies to users, clients or addresses without settings of their own.
DEFAULT_ENTITY: Final = "<default>"
#: The number of slashes in the path of a user, client or address.
_ENTITY_DEPTH: Final = 3
#: Attempts to write a record that other clients write concurrently (``AclAuthorizer.maxUpdateRetries``).
ATTEMPTS_MAX: Final = 10
_CONFIG_CHANGE: Final = "/config/changes/config_change_"


@runtime_checkable
class Records(Protocol):
    """A store whose raw records can be read. Callable from any thread."""

    def read_record(self, path: str) -> bytes | None:
        """The data at a path, or None."""

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names of the children of a path. Empty if it does not exist."""


@runtime_checkable
class RecordWriter(Protocol):
    """A store whose raw records can be written. Callable from any thread. Each call raises StoreError.

    Writes are not fenced, because brokers write these records, too.
    """

    def read_versioned_record(self, path: str) -> tuple[bytes, int] | None:
        """The data and version of a record, or None."""

    def write_record(self, path: str, data: bytes, version: int | None) -> bool:
        """Replace a record at ``version``; None creates it with its parents. Return false if the record has another
        version, does not exist, or exists already."""

    def delete_record(self, path: str, version: int) -> bool:
        """Delete a record without children at ``version``. Return false if that is not possible."""

    def append_record(self, prefix: str, data: bytes) -> None:
        """Create a record whose path is ``prefix`` and the next sequence number."""


class NoRecords:
    """A store without readable records."""

    def read_record(self, path: str) -> bytes | None:
        """Always None."""
        return None

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Always empty."""
        return ()


@runtime_checkable
class AnnouncingStore(Protocol):
    """A store that can register a controller beside the brokers."""

    def announce(self, registration: Registration, /) -> None:
        """The registration to use while the controller has the role. Callable from any thread."""


def decode_record(data: bytes | None) -> Mapping[str, Any]:
    """A record with a JSON object. Empty for any other data."""
    try:
        value = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def sanitized(name: str) -> str:
    """A user's name in paths (Kafka's Sanitizer): percent-encoded as in URLs, including blanks and asterisks."""
    return quote(name, safe="-_.").replace("~", "%7E")


def desanitized(name: str) -> str | None:
    """The reverse of ``sanitized``. None for the default entity."""
    return None if name == DEFAULT_ENTITY else unquote(name)


def settings_of_user(records: Records, user: str) -> dict[str, str]:
    """The settings in ``/config/users/NAME``. Empty if they are missing or malformed."""
    return settings_at(records, f"/config/users/{sanitized(user)}")


def settings_at(records: Records, path: str) -> dict[str, str]:
    """The settings of the entity at a path. Empty if they are missing or malformed."""
    return _parse_settings(records.read_record(path))


def _parse_settings(data: bytes | None) -> dict[str, str]:
    config = decode_record(data).get("config")
    return {str(key): str(value) for key, value in config.items()} if isinstance(config, dict) else {}


def attempts(writer: RecordWriter, path: str) -> Iterator[tuple[bytes, int] | None]:
    """The present record for each attempt to replace it at its version, until the caller succeeds and stops.

    Raises StoreError after ATTEMPTS_MAX attempts.
    """
    for _ in range(ATTEMPTS_MAX):
        yield writer.read_versioned_record(path)
    raise StoreError(f"{path}: written by others {ATTEMPTS_MAX} times while it was to be changed")


def change_settings(
    writer: RecordWriter, entity: str, change: Callable[[dict[str, str]], Mapping[str, str] | None]
) -> None:
    """Replace the settings of a user, client or address by the result of ``change``, and notify all brokers.

    ``entity`` is the path below ``/config``, such as ``users/alice/clients/app``. ``change`` returns None to keep the
    settings. After a concurrent write it is called again. A record without settings and children is deleted (Kafka 3.9
    ``AdminZkClient.changeEntityConfig``). Raises StoreError.
    """
    path = f"/config/{entity}"
    for stored in attempts(writer, path):
        before = _parse_settings(None if stored is None else stored[0])
        after = change(dict(before))
        if after is None:
            return
        if not after and stored is not None and writer.delete_record(path, stored[1]):
            _delete_empty_parents(writer, path)
            break
        if not after and stored is None:
            break
        data = json.dumps({"version": 1, "config": dict(after)}, separators=(",", ":")).encode()
        if writer.write_record(path, data, None if stored is None else stored[1]):
            break
    notice = json.dumps({"version": 2, "entity_path": entity}, separators=(",", ":"))
    writer.append_record(_CONFIG_CHANGE, notice.encode())


def _delete_empty_parents(writer: RecordWriter, path: str) -> None:
    """Delete the empty parents of a user's client: the list of the user's clients, then the user."""
    while path.count("/") > _ENTITY_DEPTH:
        path = path.rpartition("/")[0]
        stored = writer.read_versioned_record(path)
        if stored is None or _parse_settings(stored[0]) or not writer.delete_record(path, stored[1]):
            return


def cluster_id(records: Records) -> str | None:
    """``/cluster/id``."""
    value = decode_record(records.read_record("/cluster/id")).get("id")
    return value if isinstance(value, str) else None


def registered_brokers(records: Records, other_than: int) -> list[Registration]:
    """The brokers registered in the store except ``other_than``. Unreadable registrations are left out.

    Records have no broker epoch, so the epoch is a checksum of the registration.
    """
    registrations = []
    for name in records.read_record_names("/brokers/ids"):
        path = f"/brokers/ids/{name}"
        data = records.read_record(path)
        if data is None or not name.isdecimal() or int(name) == other_than:
            continue
        with suppress(KframeError, msgspec.MsgspecError):
            znode = BROKER_DECODER.decode(data)
            endpoints = tuple(endpoints_of(znode, path))
            registrations.append(Registration(int(name), zlib.crc32(data), endpoints, rack_of(znode)))
    return registrations
