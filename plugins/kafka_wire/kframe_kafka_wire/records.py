"""What Kafka keeps in ZooKeeper beside what a controller writes: credentials, ACLs, the id of the cluster."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

import msgspec

from kframe import Controller, KframeError
from kframe.model.brokers import Registration
from kframe.snapshot.znodes import BROKER_DECODER, endpoints_of, rack_of


@runtime_checkable
class Records(Protocol):
    """A store that shows its records as they are. Callable from any thread."""

    def read_record(self, path: str) -> bytes | None:
        """What stands at a path; None if there is no such record."""

    def read_record_names(self, path: str) -> tuple[str, ...]:
        """Names below a path; none if there is no such record."""


@runtime_checkable
class UserWriter(Protocol):
    """A store that takes the settings of users. Called in the controller's thread."""

    def write_user(self, user: str, config: Mapping[str, str]) -> None:
        """Replace the settings of a user, whose name is given as ``sanitized``, and leave word of it."""


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
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def sanitized(name: str) -> str:
    """A user's name as it stands in paths (Kafka's Sanitizer): as in a URL, a blank and an asterisk too."""
    return quote(name, safe="-_.").replace("~", "%7E")


def settings_of_user(records: Records, user: str) -> dict[str, str]:
    """What stands in ``/config/users/NAME``; nothing if that is not there or cannot be read."""
    return settings_at(records, f"/config/users/{sanitized(user)}")


def settings_at(records: Records, path: str) -> dict[str, str]:
    """The settings of an entity whose record stands at a path; nothing if that is not there or cannot be read."""
    config = decode_record(records.read_record(path)).get("config")
    return {str(key): str(value) for key, value in config.items()} if isinstance(config, dict) else {}


def cluster_id(records: Records) -> str | None:
    """``/cluster/id``."""
    found = decode_record(records.read_record("/cluster/id")).get("id")
    return found if isinstance(found, str) else None


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
