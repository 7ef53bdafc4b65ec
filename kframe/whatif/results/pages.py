"""The page of a cluster."""

from __future__ import annotations

from typing import Any, Final, Protocol

from kframe.pages.parts import BarsPart, FactsPart, NotesPart, PageContent
from kframe.snapshot import Snapshot
from kframe.whatif.results.health import ClusterHealth

#: Most brokers that a page pictures.
_SHOWN: Final = 40


class ShownCluster(Protocol):
    """What a page says of a cluster besides its health."""

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot, with its name."""

    @property
    def rules(self) -> str:
        """The rules of the controller in words."""

    @property
    def cluster(self) -> Any:
        """The cluster, with its brokers."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions about values that the snapshot lacks."""


def whatif_page(shown: ShownCluster, health: ClusterHealth) -> PageContent:
    """A cluster as it stands."""
    broker_ids = shown.cluster.brokers.ids.tolist()
    facts: list[tuple[str, object]] = [("partitions", int(health.counted.sum()))]
    for what, count in health.counts().items():
        facts.append((what.replace("_", " "), "unknown" if count is None else count))
    leaders, preferred = health.leaders.tolist(), health.preferred.tolist()
    rows = [
        (f"broker {broker_id}", preferred[index], leaders[index]) for index, broker_id in enumerate(broker_ids[:_SHOWN])
    ]
    bars = BarsPart("preferred leaders (grey) and leaders (blue)", rows, len(broker_ids))
    title = f"{shown.snapshot.source.name}, by the rules of {shown.rules}"
    return PageContent(title, FactsPart(facts), [bars, NotesPart(shown.assumptions)])
