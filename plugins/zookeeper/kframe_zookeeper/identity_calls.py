"""Store calls that register this controller. Old brokers and other instances read the records."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from kframe.plugin import StoreError
from kframe.plugin.cluster import Registration
from kframe.plugin.live import Instance
from kframe_zookeeper.connection import Connection
from kframe_zookeeper.instances import InstanceRecord
from kframe_zookeeper.presence import Presence


class IdentityStore(Protocol):
    """The members of the store that these calls use."""

    _connection: Connection | None
    _presence: Presence | None
    _instance: InstanceRecord | None

    def _put(self, task: Callable[[], None]) -> None: ...
    def _update_registration(self) -> None: ...


class IdentityCalls:
    """Part of ZooKeeperStore."""

    _presence: Presence | None
    _instance: InstanceRecord | None

    def announce(self: IdentityStore, registration: Registration) -> None:
        """Register in ``/brokers/ids`` while we have the role. See ``presence``. Callable from any thread."""
        self._presence = Presence(registration, time.time_ns() // 1_000_000)
        self._put(self._update_registration)

    def register_instance(self: IdentityStore, instance: Instance, *, duplicate: bool = False) -> None:
        """See ``kframe.snapshot.instances.InstanceRegistration``."""
        record = self._instance
        if record is None:
            self._instance = InstanceRecord(instance, duplicate=duplicate)
            return

        def update() -> None:
            connection = self._connection
            if connection is not None:
                with suppress(StoreError):  # The next session writes a complete record.
                    record.update(connection)

        record.instance = instance
        self._put(update)

    def _update_registration(self: IdentityStore) -> None:
        """Register in ``/brokers/ids`` if we have the role, else unregister. Runs in the worker."""
        connection, presence = self._connection, self._presence
        if connection is not None and presence is not None:
            presence.update(connection)
