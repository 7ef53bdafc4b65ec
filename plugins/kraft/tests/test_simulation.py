"""Simulated clusters: seeds without a violation, and broken controllers that the simulation notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kframe_kraft.log import DurableLog
from kframe_kraft.quorum import Leadership, SoleVoter

from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.brokers.heartbeats import OFFSET_MAX, Heartbeats
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.random_source import RandomSource
from kframe.core.kraft.replication import alter_partition, partition_changes
from kframe.core.kraft.replication.election_counts import ElectionCounts
from kframe.core.kraft.topics import placement
from kframe.errors import ErrorCode
from kframe.model.arrays import Ragged
from verification.kraft.simulation.options import draw_options
from verification.kraft.simulation.simulation import play

#: A broken controller is noticed by one of this many seeds.
SEEDS = range(1, 41)


@pytest.mark.parametrize(
    "seed", [*range(1, 11), *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(11, 201))]
)
def test_seed_breaks_nothing(seed: int) -> None:
    assert play(draw_options(seed)).violations == ()


def test_seed_gives_the_same_log_again() -> None:
    first, second = (play(draw_options(4)) for _ in range(2))
    assert first == second
    assert first.counts["records acknowledged"] > 50


def _acknowledges_early(log: DurableLog) -> int:
    return log.end


def _keeps_former_process(*arguments: Any, **named: Any) -> ControllerResult[None]:
    return ControllerResult((), None)


def _accepts_any_isr(*arguments: Any) -> ErrorCode:
    return ErrorCode.NONE


def _stands_again(voter: SoleVoter) -> Any:
    """An epoch that was used before."""
    voter.epoch -= 1
    return _stand(voter)


def _knows_all_is_committed(leadership: Leadership, end: int) -> bool:
    leadership.high_watermark = end + 1
    return True


def _shrinks_without_elr(context: Any, rows: Any, isr: Any, unclean_broker: int) -> Ragged:
    return Ragged.empty(len(rows))


def _counts_nothing(counts: Any, metadata: Any, part: Any) -> None:
    pass


def _awaits_no_broker(heartbeats: Heartbeats) -> int:
    return OFFSET_MAX


def _ends_no_session(heartbeats: Heartbeats, now_ns: int) -> list[tuple[int, int]]:
    return []


def _accepts_any_features(*arguments: Any) -> None:
    pass


def _keeps_order(values: list[Any], random: RandomSource) -> None:
    pass


_stand = SoleVoter.stand


@pytest.mark.parametrize(
    ("owner", "name", "broken", "rule"),
    [
        (DurableLog, "sync", _acknowledges_early, "K6"),
        (registration, "handle_broker_shutdown", _keeps_former_process, "I5"),
        (alter_partition, "_check", _accepts_any_isr, "I5"),
        (SoleVoter, "stand", _stands_again, "K1"),
        (broker_events, "remove_broker", None, "I4"),
        (broker_events, "add_broker", None, "L1"),
        (partition_changes, "_update_elrs", _shrinks_without_elr, "K5"),
        (ElectionCounts, "add", _counts_nothing, "I24"),
        (Heartbeats, "lowest_active_offset", _awaits_no_broker, "K10"),
        (Heartbeats, "expired_sessions", _ends_no_session, "K10"),
        (registration, "_check_features", _accepts_any_features, "K10"),
        (placement, "shuffle", _keeps_order, "K10"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_controller_is_noticed(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, broken: Callable[..., Any] | None, rule: str
) -> None:
    """``None``: the decision writes nothing."""
    monkeypatch.setattr(owner, name, broken or (lambda context, *_: _nothing(context)))
    assert any(violation.startswith(rule) for seed in SEEDS for violation in play(draw_options(seed)).violations)


def _nothing(context: Any) -> Any:
    import numpy as np

    from kframe.core.kraft.replication.isr_changes import remove_broker

    return remove_broker(context, 0, np.empty(0, np.int32))
