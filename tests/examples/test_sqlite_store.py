"""The example store passes all contract tests of stores. Its file preserves the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kframe
from kframe.embedded import RecordingTransport
from kframe.model.cluster import ClusterState
from kframe.plugin.store import Load
from kframe.testing.clusters import cluster_of, described, healthy, registration
from kframe.testing.store_contract import StorageFactory, StoreContract
from kframe.testing.store_fixture import settings, small_cluster
from tests.examples.loading import load

sqlite_store = load("stores/sqlite_store.py")


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def make_storage(self, tmp_path: Path) -> Iterator[StorageFactory]:
        ensembles: list[Any] = []

        def make(cluster: ClusterState) -> Any:
            ensembles.append(sqlite_store.SqliteEnsemble(str(tmp_path / f"{len(ensembles)}.db"), cluster))
            return ensembles[-1]

        yield make
        for ensemble in ensembles:
            ensemble.close()


def stored(path: Path) -> ClusterState:
    """Return the stored cluster as a new process reads it."""
    with closing(sqlite_store.SqliteEnsemble(str(path))) as ensemble:
        store = ensemble.connect()
        store.open(lambda _event: None)
        cluster: ClusterState = store.perform(Load())
        return cluster


def test_database_file_has_complete_cluster(tmp_path: Path) -> None:
    cluster = small_cluster()
    sqlite_store.SqliteEnsemble(str(tmp_path / "c.db"), cluster).close()
    loaded = stored(tmp_path / "c.db")
    assert described(loaded) == described(cluster)
    cluster.topics.deleting[:] = 0  # a mark next to the topics
    assert settings(loaded) == settings(cluster)


def controlled(ensemble: Any) -> kframe.Controller:
    controller = kframe.ControllerBuilder(1, store=ensemble.connect(), transport=RecordingTransport()).build()
    controller.open()
    controller.run_until_idle()
    return controller


def test_cluster_outlives_its_process(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    first = sqlite_store.SqliteEnsemble(
        str(path), cluster_of({"old": [healthy(1, 2)], "gone": [healthy(1)]}, (1, 2, 3))
    )
    controller = controlled(first)
    controller.create_topics([kframe.NewTopic("new", 4, 2)])
    controller.create_partitions([kframe.NewPartitions("old", 3)])
    controller.reassign({("old", 0): [3, 2]})
    controller.delete_topics(["gone"])  # the mark remains: no broker responds to a recording transport
    controller.run_until_idle()
    first.unregister_brokers([1])
    controller.run_until_idle()
    before = described(first.states.cluster)

    second = sqlite_store.SqliteEnsemble(str(path))
    assert described(second.states.cluster) == before
    assert set(before) >= {"new-3", "old-2", "gone-0"}
    assert before["old-0"]["adding_replicas"] == [3]
    second.register_brokers([registration(2), registration(3)])
    restarted = controlled(second)
    assert restarted.status().controller_epoch == 2
    assert restarted.status().gauges["TopicsToDeleteCount"] == 1
    controller.stop()
    restarted.stop()
    first.close()
    second.close()


def test_controller_runs_with_example_plugin(tmp_path: Path) -> None:
    registry = kframe.build_registry(extra=[sqlite_store], allowed=())
    url = f"sqlite:{tmp_path / 'cluster.db'}"
    controller = kframe.ControllerBuilder(5, store=url, transport="recording:", registry=registry).build()
    controller.open()
    controller.run_until_idle()
    assert controller.status().active
    controller.stop()
