"""Random valid snapshots."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kframe.model.arrays import Int32, Ragged, UInt8
from kframe.model.brokers import Endpoint
from kframe.model.ids import NO_LEADER, NO_STATE
from kframe.snapshot import BrokerFacts, PartitionFacts, Snapshot, Source, TopicFacts

INT32_MAX = 2**31 - 1
COUNTS = st.integers(0, INT32_MAX)
NAMES = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)
CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "min.insync.replicas": st.integers(1, 9).map(str),
        "unclean.leader.election.enable": st.sampled_from(["true", "false"]),
        "note": st.text(max_size=5),
    },
)
ENDPOINTS = st.builds(
    Endpoint, st.just("IN"), st.text(max_size=5), st.integers(-1, 65_535), st.sampled_from(["SSL", "PLAINTEXT"])
)


def _brokers(draw: st.DrawFn) -> tuple[BrokerFacts, ...]:
    ids = draw(st.lists(st.one_of(st.integers(0, 9), COUNTS), min_size=1, max_size=6, unique=True))
    return tuple(
        BrokerFacts(
            broker_id,
            draw(st.sampled_from([True, False, None])),
            draw(st.none() | st.integers(0, 2**63 - 1)),
            draw(st.none() | st.lists(ENDPOINTS, max_size=2).map(tuple)),
            draw(st.none() | st.text(max_size=4)),
        )
        for broker_id in sorted(ids)
    )


def _maybe(draw: st.DrawFn, complete: bool, column: Any) -> Any:
    return column if complete or draw(st.booleans()) else None


def _numbers(values: list[int]) -> Int32:
    return np.array(values, np.int32)


def _subsets(draw: st.DrawFn, lists: list[list[int]]) -> list[list[int]]:
    """Draw a subset of each list, in its order."""
    return [[value for value in values if draw(st.booleans())] for values in lists]


def _partitions(draw: st.DrawFn, ids: list[int], count: int, complete: bool) -> PartitionFacts:
    replicas = [draw(st.lists(st.sampled_from(ids), min_size=1, max_size=4, unique=True)) for _ in range(count)]
    stateless = [complete and draw(st.integers(0, 4)) == 0 for _ in range(count)]
    led = complete or draw(st.booleans())
    isr = [
        [] if stateless_row else members
        for stateless_row, members in zip(stateless, _subsets(draw, replicas), strict=True)
    ]
    leader = [
        NO_LEADER if stateless_row else draw(st.sampled_from([NO_LEADER, *members]))
        for stateless_row, members in zip(stateless, replicas, strict=True)
    ]
    epochs = {
        name: _numbers([-1 if stateless_row else draw(COUNTS) for stateless_row in stateless])
        for name in ("leader_epoch", "controller_epoch")
    }
    versions = _numbers([NO_STATE if stateless_row else draw(COUNTS) for stateless_row in stateless])
    recovery = _numbers([0 if stateless_row else draw(st.integers(0, 1)) for stateless_row in stateless])
    return PartitionFacts(
        Ragged.of(replicas),
        _numbers(leader) if led else None,
        Ragged.of(isr) if led else None,
        _maybe(draw, complete, epochs["leader_epoch"]),
        _maybe(draw, complete, epochs["controller_epoch"]),
        _maybe(draw, complete, versions),
        _maybe(draw, complete, recovery),
        _maybe(draw, complete, Ragged.of(_subsets(draw, replicas))),
        _maybe(draw, complete, Ragged.of(_subsets(draw, replicas))),
    )


@st.composite
def snapshots(draw: st.DrawFn, complete: bool = False) -> Snapshot:
    """Draw a snapshot. ``complete`` ones have all data of partitions, some of which have no state yet."""
    brokers = _brokers(draw)
    names = tuple(sorted(draw(st.sets(NAMES, max_size=4))))
    counts = _numbers([draw(st.integers(0, 4)) for _ in names])
    ids: UInt8 = np.frombuffer(b"".join(draw(st.binary(min_size=16, max_size=16)) for _ in names), np.uint8)
    configs = {index: config for index in range(len(names)) if (config := draw(CONFIGS))}
    topics = TopicFacts(
        names,
        counts,
        _maybe(draw, complete, ids.reshape(-1, 16)),
        _maybe(draw, complete, np.array([draw(st.booleans()) for _ in names], np.uint8)),
        _maybe(draw, complete, configs),
    )
    return Snapshot(
        brokers,
        topics,
        _partitions(draw, [facts.broker_id for facts in brokers], int(counts.sum()), complete),
        Source(draw(st.text(max_size=5)), draw(st.text(max_size=5))),
        draw(st.none() | st.text(max_size=5)),
        draw(st.none() | COUNTS),
        draw(st.none() | COUNTS),
        draw(st.none() | CONFIGS),
        draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)),
    )
