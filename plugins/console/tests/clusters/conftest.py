from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from verification.console.kraft_cluster import cluster_with_records
from verification.kraft.kafka_nodes import KraftCluster, missing
from verification.kraft.kafka_tools import KafkaTools
from verification.support.properties import load_profile

load_profile()


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[KafkaTools]:
    if lacking := missing():
        pytest.skip(lacking)
    with KafkaTools(tmp_path / "tools") as tools:
        yield tools


@pytest.fixture(params=["3.9.1", "4.4.0"])
def kraft_cluster(request: pytest.FixtureRequest, tmp_path: Path, tools: KafkaTools) -> Iterator[KraftCluster]:
    with cluster_with_records(request.param, tmp_path / "nodes", tools) as cluster:
        yield cluster
