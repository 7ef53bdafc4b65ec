"""Timing of work by phase, printed for a user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class Stopwatch:
    """Prints the duration of each phase when it ends."""

    def __init__(self, console: Console) -> None:
        from kframe.runtime.clock import SystemClock

        self.clock = SystemClock()
        self._console = console
        self.phases: list[tuple[str, float]] = []
        """The phases that have ended, with their milliseconds."""

    @property
    def total_ms(self) -> float:
        """The duration of all phases."""
        return sum(took_ms for _, took_ms in self.phases)

    @contextmanager
    def phase(self, label: str) -> Iterator[None]:
        """Time the block; a terminal shows a spinner meanwhile."""
        start_ms = self.clock.now_ms()
        with self._console.status(label):
            yield
        self.add(label, self.clock.now_ms() - start_ms)

    def add(self, label: str, took_ms: float) -> None:
        """Add a phase that has ended, and print its duration."""
        self.phases.append((label, took_ms))
        self.print_time(label, took_ms)

    def print_time(self, label: str, took_ms: float) -> None:
        """Print one line."""
        self._console.print(f"  {label:<58}{took_ms / 1000:>8.3f} s", highlight=False)
