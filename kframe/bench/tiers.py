"""Kafka's own rule for partitions whose leader is gone as a custom selector of each tier: what it costs to be asked."""

from __future__ import annotations

from collections.abc import Mapping

from kframe.core.selectors.kafka_selectors import FirstInSync
from kframe.kernels import _selectors
from kframe.model.elections import LeaderSelector
from kframe.model.ids import ElectionKind
from kframe.registry.native import NativeSelector
from kframe.registry.scalar import PartitionElection, ScalarSelector


def native() -> Mapping[ElectionKind, LeaderSelector]:
    """A C function for one partition."""
    return {ElectionKind.OFFLINE: NativeSelector("first-in-sync-native", _selectors.FIRST_IN_SYNC)}


def bulk() -> Mapping[ElectionKind, LeaderSelector]:
    """Array passes over all partitions."""
    return {ElectionKind.OFFLINE: FirstInSync("first-in-sync")}


def scalar() -> Mapping[ElectionKind, LeaderSelector]:
    """A Python function for one partition."""
    return {ElectionKind.OFFLINE: ScalarSelector("first-in-sync-scalar", _first_in_sync)}


def _first_in_sync(election: PartitionElection) -> int | None:
    for broker_id in election.eligible:
        if broker_id in election.isr:
            return broker_id
    return election.eligible[0] if election.unclean_allowed and election.eligible else None
