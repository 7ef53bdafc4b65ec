"""What the core asks of storage: one record for each question, with the call of the port that answers it.

The core only makes these records; the runtime calls ``perform``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from kframe.model.brokers import Registration
from kframe.model.changes import StateChange, StoredStates, WriteResult
from kframe.model.cluster import ClusterState
from kframe.model.columns import Int32
from kframe.model.effects import Ask
from kframe.model.ports import Store

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class AskStore(Ask[Value]):
    """A question to storage. ``perform`` says which call of the port it is; the core itself never calls it."""

    def perform(self, store: Store, cluster: ClusterState) -> Value:
        """Ask ``store``; ``cluster`` is what the rows of the effect are rows of."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Holder:
    """Who is controller, -1 for nobody; ``ours`` only if our own session holds the role, whatever the id says."""

    controller_id: int
    ours: bool


@dataclass(frozen=True, slots=True)
class ReadController(AskStore[Holder]):
    """Read who is controller, and watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> Holder:
        """``Store.controller`` and ``Store.owns_role``."""
        return Holder(store.controller(), store.owns_role())


@dataclass(frozen=True, slots=True)
class Claim(AskStore[int | None]):
    """Try to become controller: our new controller epoch, None if the role is taken."""

    controller_id: int

    def perform(self, store: Store, cluster: ClusterState) -> int | None:
        """``Store.claim``."""
        return store.claim(self.controller_id)


@dataclass(frozen=True, slots=True)
class Prepare(AskStore[None]):
    """Before a failover loads: settle ``/feature``, drop log-dir and ISR notifications."""

    def perform(self, store: Store, cluster: ClusterState) -> None:
        """``Store.prepare``."""
        store.prepare()


@dataclass(frozen=True, slots=True)
class Load(AskStore[ClusterState]):
    """Read the whole cluster; the core owns what it gets."""

    def perform(self, store: Store, cluster: ClusterState) -> ClusterState:
        """``Store.load``."""
        return store.load()


@dataclass(frozen=True, slots=True)
class ReadBrokers(AskStore[tuple[Registration, ...]]):
    """Read all registrations, and watch for the next change."""

    def perform(self, store: Store, cluster: ClusterState) -> tuple[Registration, ...]:
        """``Store.read_brokers``."""
        return store.read_brokers()


@dataclass(frozen=True, slots=True, eq=False)
class WriteStates(AskStore[WriteResult]):
    """Store these states if our controller epoch and each row's version still hold."""

    change: StateChange

    def perform(self, store: Store, cluster: ClusterState) -> WriteResult:
        """``Store.write_states``."""
        return store.write_states(cluster, self.change)


@dataclass(frozen=True, slots=True, eq=False)
class ReadStates(AskStore[StoredStates]):
    """Read the states of these rows."""

    rows: Int32

    def perform(self, store: Store, cluster: ClusterState) -> StoredStates:
        """``Store.read_states``."""
        return store.read_states(cluster, self.rows)
