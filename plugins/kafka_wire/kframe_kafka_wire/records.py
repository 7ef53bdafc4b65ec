"""What Kafka keeps in ZooKeeper beside what a controller writes: credentials, ACLs, the id of the cluster."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, runtime_checkable
from urllib.parse import quote, unquote

import msgspec

from kframe.plugin import KframeError, StoreError
from kframe.plugin.cluster import Registration
from kframe.plugin.server import Controller
from kframe.plugin.znodes import BROKER_DECODER, endpoints_of, rack_of

#: The name of the entity that stands for all users, clients or addresses without settings of their own.
DEFAULT_ENTITY: Final = "<default>"
#: Slashes in the path of a user, client or address.
_ENTITY_DEPTH: Final = 3
_TRIES_MOST: Final = 10
_CONFIG_CHANGE: Final = "/config/changes/config_change_"


@runtime_checkable
class Records(Protocol):
    """A store that shows its records as they are. Callable from any thread."""

    def read_record(self, path: str) -> bytes | None:
        """What stands at a path; None if there is no such record."""

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names below a path; none if there is no such record."""


@runtime_checkable
class RecordWriter(Protocol):
    """A store whose records can be written. Callable from any thread, and not fenced: brokers write these records too.

    Each call raises StoreError where it cannot be done.
    """

    def read_versioned_record(self, path: str) -> tuple[bytes, int] | None:
        """A record and its version; None if there is no such record."""

    def write_record(self, path: str, data: bytes, version: int | None) -> bool:
        """Replace a record of that version, or create it with its parents where ``version`` is None; False where
        another version, no record, or already a record is there."""

    def delete_record(self, path: str, version: int) -> bool:
        """Delete a record of that version that has no children; False where that is not what is there."""

    def append_record(self, prefix: str, data: bytes) -> None:
        """Create a record whose path is ``prefix`` and the next number in sequence."""


class NoRecords:
    """A store that shows nothing."""

    def read_record(self, path: str) -> bytes | None:
        """Nothing."""
        return None

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Nothing."""
        return ()


def records_of(controller: Controller) -> Records:
    """The records of a controller's store, as far as it shows them."""
    store: object = controller.store
    return store if isinstance(store, Records) else NoRecords()


@runtime_checkable
class Announcing(Protocol):
    """A store that can show a controller where brokers are registered."""

    def announce(self, registration: Registration, /) -> None:
        """As what, while it has the role. Callable from any thread."""


def announce(controller: Controller, registration: Registration) -> None:
    """Show a controller where brokers are registered, if its store can."""
    store: object = controller.store
    if isinstance(store, Announcing):
        store.announce(registration)


def decode_record(data: bytes | None) -> Mapping[str, Any]:
    """A record that is a JSON object; empty for anything else."""
    try:
        value = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def sanitized(name: str) -> str:
    """A user's name as it stands in paths (Kafka's Sanitizer): as in a URL, a blank and an asterisk too."""
    return quote(name, safe="-_.").replace("~", "%7E")


def desanitized(name: str) -> str | None:
    """The reverse; None for the name that stands for all entities without settings of their own."""
    return None if name == DEFAULT_ENTITY else unquote(name)


def settings_of_user(records: Records, user: str) -> dict[str, str]:
    """What stands in ``/config/users/NAME``; nothing if that is not there or cannot be read."""
    return settings_at(records, f"/config/users/{sanitized(user)}")


def settings_at(records: Records, path: str) -> dict[str, str]:
    """The settings of an entity whose record stands at a path; nothing if that is not there or cannot be read."""
    return _settings_in(records.read_record(path))


def _settings_in(data: bytes | None) -> dict[str, str]:
    config = decode_record(data).get("config")
    return {str(key): str(value) for key, value in config.items()} if isinstance(config, dict) else {}


def change_settings(
    writer: RecordWriter, entity: str, change: Callable[[dict[str, str]], Mapping[str, str] | None]
) -> None:
    """Replace the settings of a user, client or address by what ``change`` makes of them, and notify all brokers.

    ``entity`` is the path below ``/config``, such as ``users/alice/clients/app``. ``change`` may return None to leave
    all as it is, and is called again where somebody else wrote first. A record that is left without settings and
    without records below it is deleted (Kafka 3.9 ``AdminZkClient.changeEntityConfig``). Raises StoreError.
    """
    path = f"/config/{entity}"
    for _ in range(_TRIES_MOST):
        stored = writer.read_versioned_record(path)
        before = _settings_in(None if stored is None else stored[0])
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
    else:
        raise StoreError(f"{path}: written by others {_TRIES_MOST} times while it was to be changed")
    notice = json.dumps({"version": 2, "entity_path": entity}, separators=(",", ":"))
    writer.append_record(_CONFIG_CHANGE, notice.encode())


def _delete_empty_parents(writer: RecordWriter, path: str) -> None:
    """Of a client of a user: the list of that user's clients, then the user, while they hold nothing."""
    while path.count("/") > _ENTITY_DEPTH:
        path = path.rpartition("/")[0]
        stored = writer.read_versioned_record(path)
        if stored is None or _settings_in(stored[0]) or not writer.delete_record(path, stored[1]):
            return


def cluster_id(records: Records) -> str | None:
    """``/cluster/id``."""
    value = decode_record(records.read_record("/cluster/id")).get("id")
    return value if isinstance(value, str) else None


def registered_brokers(records: Records, other_than: int) -> list[Registration]:
    """The brokers that are registered in storage, without the node ``other_than``; unreadable registrations are left
    out. In place of the broker epoch, which no record shows, stands a checksum that changes with the registration."""
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
