"""How the only voter of a quorum becomes its leader and the active controller, on any log."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from kframe.plugin.kraft_controller import KraftContext
from kframe_kraft.batches import BatchPosition, encode_control_batch
from kframe_kraft.controller import Decider, DecisionLoop, WritableLog
from kframe_kraft.quorum import SoleVoter


class SystemRandom:
    """Draws the first replicas of automatic assignments."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``."""
        return self._random.randrange(bound)


def lead(
    quorum: SoleVoter,
    log: WritableLog,
    context: KraftContext,
    on_progress: Callable[[], None],
    *,
    log_has_voters: bool,
) -> DecisionLoop:
    """Append the first batch of the epoch, in which ``quorum`` has stood. Returns the loop, not started.

    ``context`` has every record of the log, ``on_progress`` as in DecisionLoop, ``log_has_voters`` as in SoleVoter.
    Raises LogWriteError.
    """
    content = quorum.lead(log.end, log_has_voters=log_has_voters)
    log.append(encode_control_batch(content, BatchPosition(log.end, quorum.epoch, time.time_ns() // 1_000_000)))
    assert quorum.leadership is not None
    return DecisionLoop(Decider(context, log, quorum.epoch), log, quorum.leadership, on_progress)
