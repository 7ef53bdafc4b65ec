"""The page of a cluster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from kframe.pages.parts import BarsPart, FactsPart, Heading, NotesPart, Part
from kframe.pages.shown import Shown
from kframe.snapshot import Snapshot
from kframe.whatif.results.health import ClusterHealth

#: Most brokers that a page pictures.
_SHOWN: Final = 40


class ShownCluster(Shown):
    """The page of a cluster as it stands."""

    snapshot: Snapshot

    @property
    @abstractmethod
    def rules(self) -> str:
        """The rules of the controller in words."""

    @property
    @abstractmethod
    def cluster(self) -> Any:
        """The cluster, with its brokers."""

    @property
    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about values that the snapshot lacks."""

    @abstractmethod
    def health(self) -> ClusterHealth:
        """The health of the cluster now."""

    def heading(self) -> Heading:
        """See ``Shown``."""
        health = self.health()
        facts: list[tuple[str, object]] = [("partitions", int(health.counted.sum()))]
        for what, count in health.counts().items():
            facts.append((what.replace("_", " "), "unknown" if count is None else count))
        return Heading(f"{self.snapshot.source.name}, by the rules of {self.rules}", FactsPart(facts))

    def parts(self) -> Sequence[Part]:
        """See ``Shown``."""
        health, broker_ids = self.health(), self.cluster.brokers.ids.tolist()
        leaders, preferred = health.leaders.tolist(), health.preferred.tolist()
        rows = [
            (f"broker {broker_id}", preferred[index], leaders[index])
            for index, broker_id in enumerate(broker_ids[:_SHOWN])
        ]
        bars = BarsPart("preferred leaders (grey) and leaders (blue)", rows, len(broker_ids))
        return (bars, NotesPart(self.assumptions))
