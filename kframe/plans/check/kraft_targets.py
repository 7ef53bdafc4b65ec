"""The brokers and topics of a plan as a KRaft controller sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kframe.model.arrays import Int32
from kframe.model.kraft.brokers import BrokerRegistration
from kframe.model.kraft.releases import REFUSES_CORDONED, Release
from kframe.snapshot import Snapshot
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.settings import knows_min_insync


@dataclass(frozen=True, slots=True, eq=False)
class KraftTargets:
    """The state of the brokers and topics of a plan. Arrays have broker ids.

    ``assignable``: registered, and not refused as cordoned by the ``release``. ``cordoned``: all log directories are
    cordoned. ``partly_cordoned``: some are. ``min_isr`` (t,): ``min.insync.replicas`` of each topic, or None if the
    snapshot does not have it. ``assumptions``: those of the rules.
    """

    rules: str
    release: Release
    assumptions: tuple[str, ...]
    assignable: Int32
    unregistered: Int32
    cordoned: Int32
    partly_cordoned: Int32
    fenced: Int32
    in_controlled_shutdown: Int32
    min_isr: Int32 | None

    @property
    def inactive(self) -> Int32:
        """Brokers that cannot be in an ISR until they start again."""
        return np.concatenate([self.fenced, self.in_controlled_shutdown])

    @staticmethod
    def of(snapshot: Snapshot) -> KraftTargets:
        """The state of the brokers and topics in a snapshot of a KRaft cluster."""
        engine = KraftEngine(snapshot)
        registrations, release = engine.cluster.brokers.registrations, engine.context.settings.release

        def brokers(has: Callable[[BrokerRegistration], bool]) -> Int32:
            return np.array([broker_id for broker_id, stored in registrations.items() if has(stored)], np.int32)

        known = [facts.broker_id for facts in snapshot.brokers]
        topics = np.arange(len(snapshot.topics), dtype=np.int32)
        return KraftTargets(
            rules=engine.rules,
            release=release,
            assumptions=engine.assumptions,
            assignable=brokers(lambda stored: release < REFUSES_CORDONED or stored.has_uncordoned_directory),
            unregistered=np.array([broker_id for broker_id in known if broker_id not in registrations], np.int32),
            cordoned=brokers(lambda stored: not stored.has_uncordoned_directory),
            partly_cordoned=brokers(lambda stored: stored.has_uncordoned_directory and bool(stored.cordoned)),
            fenced=brokers(lambda stored: stored.fenced),
            in_controlled_shutdown=brokers(lambda stored: not stored.fenced and stored.in_controlled_shutdown),
            min_isr=engine.context.configured_min_isr(topics) if knows_min_insync(snapshot.topics, {}) else None,
        )
