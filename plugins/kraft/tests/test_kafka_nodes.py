"""The nodes of real clusters: formats, tools and restarts."""

from __future__ import annotations

from pathlib import Path

import pytest
from kframe_kraft.disk import read_history, read_properties

from verification.kraft.kafka_nodes import CLUSTER_ID, KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools, ToolError

pytestmark = pytest.mark.real


@pytest.mark.extended
def test_dynamic_quorum_of_separate_nodes_survives_a_kill_of_the_broker(tmp_path: Path) -> None:
    options = KraftOptions(combined=False, log_dirs=2, dynamic_quorum=True, elr=False)
    with KraftCluster(tmp_path, options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        cluster.admin(tools, "kafka-topics", "--create", "--topic", "orders", "--partitions", "3")
        broker, controller = cluster.nodes[1], cluster.nodes[3000]
        broker.kill()
        broker.start()
        broker.await_started()
        assert "PartitionCount: 3" in cluster.admin(tools, "kafka-topics", "--describe", "--topic", "orders")
        with pytest.raises(ToolError, match="already exists"):
            cluster.admin(tools, "kafka-topics", "--create", "--topic", "orders")
        cluster.stop()
        identity = read_properties(controller.log_dirs[0])
        assert (identity.cluster_id, identity.directory_id) == (CLUSTER_ID, controller.directory_id)
        assert read_history(controller.metadata_log).voters == (3000,)
        assert len({read_properties(path).directory_id for path in broker.log_dirs}) == 2
