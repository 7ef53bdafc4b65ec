"""What a controller takes from its machine. Tests and simulations replace it."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from kframe.plugin.kraft_controller import RandomSource
from kframe_kraft.log import LogFiles


class SystemRandom:
    """Draws the first replicas of automatic assignments."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``."""
        return self._random.randrange(bound)


@dataclass(frozen=True, slots=True)
class Environment:
    """``clock`` is monotonic, ``wall_clock`` counts from 1970; both are in nanoseconds. ``files`` are the log's."""

    clock: Callable[[], int] = time.monotonic_ns
    wall_clock: Callable[[], int] = time.time_ns
    random: RandomSource = field(default_factory=SystemRandom)
    new_id: Callable[[], UUID] = uuid4
    files: Callable[[Path], LogFiles] = LogFiles

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return self.wall_clock() // 1_000_000
