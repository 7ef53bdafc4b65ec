"""A plugin for ``--plugins-dir``: a live cluster and its admin API in this process, behind the usual URL schemes.

It replaces the plugins ``kafka-wire``, ``zookeeper`` and ``kraft``, which ``--no-plugin`` must leave out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kframe.embedded import MemoryEnsemble
from kframe.embedded.store import MemoryStore
from kframe.plugin import AdminSpec, ClusterSpec, hookimpl
from kframe.ports.live_cluster import ClusterStatus, Resignation
from kframe.ports.progress import ignore_progress
from kframe.snapshot import Snapshot
from kframe.snapshot.facts import CaptureFacts
from kframe.testing.clusters import cluster_of, healthy
from tests.cli.test_status import status
from tests.plans.embedded_admin import EmbeddedAdmin
from tests.whatif.samples import small
from tests.whatif.shadow.test_log_shadow import ScenarioLog, played


class EmbeddedCluster:
    """Implements ``kframe.ports.live_cluster.LiveCluster``."""

    def __init__(self, url: str, config: Mapping[str, str]) -> None:
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2), healthy(2, 1)]}, (1, 2)))
        self.captured = url.endswith("captured")
        self.by_brokers = url.startswith("kafka:")

    def store(self) -> MemoryStore:
        return self.ensemble.connect()

    def reader(self) -> MemoryStore:
        return self.ensemble.connect()

    def committed_log(self) -> ScenarioLog:
        return ScenarioLog(played("fence-by-silence"))

    def capture(self, progress: Any = ignore_progress) -> Snapshot:
        snapshot = EmbeddedAdmin().capture() if self.by_brokers else small()
        facts = CaptureFacts(2, False, 7, 1, ("/brokers/ids/1",), {"/brokers/topics/x": "malformed JSON"})
        return replace(snapshot, capture=facts) if self.captured else snapshot

    def status(self, progress: Any = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        return status(counts=None, partitions=None) if quick else status()

    def audit(self) -> tuple[str, ...]:
        return ()

    def broker_addresses(self) -> Mapping[int, str]:
        return {}

    def depose(self, controller_id: int | None = None) -> Resignation:
        return Resignation(1000, 5)


@hookimpl
def kframe_clusters() -> list[ClusterSpec]:
    return [ClusterSpec(scheme, EmbeddedCluster, "An embedded cluster.") for scheme in ("zookeeper", "kraft", "kafka")]


@hookimpl
def kframe_admins() -> list[AdminSpec]:
    return [AdminSpec("kafka", lambda url, config: EmbeddedAdmin(), "An embedded controller.")]
