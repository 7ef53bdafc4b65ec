"""How the only voter of a quorum becomes its leader and the active controller, on any log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kframe.plugin import CommitObserver
from kframe.plugin.kraft_controller import KraftContext
from kframe_kraft.batches import BatchPosition, encode_control_batch
from kframe_kraft.controller import Decider, DecisionLoop, WritableLog
from kframe_kraft.quorum import SoleVoter
from kframe_kraft.server.environment import Environment


def role_details(
    node_id: int, epoch: int, loop: DecisionLoop | None, log_end: int, *, is_active: bool
) -> dict[str, Any]:
    """Identity, role and position in the log, as ``QuorumController.details``."""
    return {
        "controller_id": node_id,
        "active": is_active,
        "active_controller": node_id if is_active else -1,
        "controller_epoch": epoch,
        "events_waiting": 0 if loop is None else loop.waiting_events,
        "log_end_offset": log_end,
    }


def lead(
    quorum: SoleVoter,
    log: WritableLog,
    context: KraftContext,
    on_progress: Callable[[], None],
    environment: Environment,
    observer: CommitObserver | None = None,
    *,
    log_has_voters: bool,
) -> DecisionLoop:
    """Append the first batch of the epoch, in which ``quorum`` has stood. Returns the loop, not started.

    ``context`` has every record of the log, ``on_progress`` and ``observer`` as in DecisionLoop, ``log_has_voters`` as
    in SoleVoter. Raises LogWriteError.
    """
    content = quorum.lead(log.end, log_has_voters=log_has_voters)
    log.append(encode_control_batch(content, BatchPosition(log.end, quorum.epoch, environment.now_ms())))
    assert quorum.leadership is not None
    decider, clocks = Decider(context, log, quorum.epoch), (environment.clock, environment.wall_clock)
    return DecisionLoop(decider, log, quorum.leadership, on_progress, *clocks, observer)
