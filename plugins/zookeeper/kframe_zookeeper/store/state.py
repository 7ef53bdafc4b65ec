"""The state that the parts of the store share: session, worker, memory and registrations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from kframe.plugin import StoreError
from kframe_zookeeper.loading.memory import Memory
from kframe_zookeeper.role.connection import Connection
from kframe_zookeeper.role.instances import InstanceRecord
from kframe_zookeeper.role.presence import Presence
from kframe_zookeeper.store.worker import Worker


class StoreState(ABC):
    """The base of the classes in ``role``, ``topics`` and ``requests`` beside it, which ``ZooKeeperStore`` joins.

    See ``kframe.ports.store.Store`` for what each call promises.
    """

    def __init__(self) -> None:
        self._memory = Memory()
        self._connection: Connection | None = None
        self._worker: Worker | None = None
        self._presence: Presence | None = None
        self._instance: InstanceRecord | None = None
        self._highest_epoch = 0
        """The highest controller epoch seen."""

    def _connected(self) -> Connection:
        connection = self._connection
        if connection is None:
            raise StoreError("the store is not open")
        return connection

    def _put(self, task: Callable[[], None]) -> None:
        """Queue a task for the worker. A closed store drops it."""
        worker = self._worker
        if worker is not None:
            worker.put(task)

    @abstractmethod
    def _expire(self, connection: Connection) -> None:
        """Emit SessionExpired, and begin a new session. Runs in the worker."""
