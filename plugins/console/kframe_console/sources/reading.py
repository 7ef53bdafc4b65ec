"""One reading of a cluster, and what is computed of it once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Protocol

from kframe.plugin.snapshot import Conditions, Loads, Snapshot, Summary, conditions_of, loads_of, summarize


@dataclass(frozen=True)
class Reading:
    """The cluster as it was read at one time. ``number`` rises with each reading of a source."""

    number: int
    snapshot: Snapshot
    read_at: datetime

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions of all partitions."""
        return conditions_of(self.snapshot)

    @cached_property
    def loads(self) -> Loads:
        """The loads of all brokers."""
        return loads_of(self.snapshot)

    @cached_property
    def summary(self) -> Summary:
        """The cluster in numbers."""
        return summarize(self.snapshot)


class ClusterSource(Protocol):
    """Where readings come from. A thread of its own reads."""

    @property
    def name(self) -> str:
        """The source as the user named it."""

    @property
    def is_live(self) -> bool:
        """Whether further readings follow."""

    @property
    def problem(self) -> str | None:
        """Why the last attempt at a reading failed; None if it did not."""

    def reading(self, at: str) -> Reading:
        """The reading at a position of the history, which the kind of source defines; the newest if ``at`` is empty.

        It may compute for a while. Raises ParameterError for a position that there is not.
        """

    def start(self) -> None:
        """Begin to read."""

    def close(self) -> None:
        """Stop reading."""
