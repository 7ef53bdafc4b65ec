"""kframe as the only controller of real, unmodified Kafka brokers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from kframe_kraft.commands.scram_users import scram_users
from kframe_kraft.disk import read_checkpoint
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.server.formatting import format_node
from kframe_kraft.server.node_config import node_config
from kframe_kraft.sources.detection import LOG_DIRECTORY

from kframe.plugin.kraft import records
from kframe.plugin.kraft_controller import default_levels, parse_level
from kframe.testing.waiting import wait_until
from verification.kraft.kafka_nodes import CLUSTER_ID, KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools, ToolError
from verification.kraft.led_cluster import LedCluster, keys_of

#: Settings of Kafka's controller that kframe refuses, so that its file does not have them.
ONLY_OF_KAFKA = ("authorizer.class.name", "super.users")

pytestmark = pytest.mark.real


def create(cluster: LedCluster, tools: KafkaTools, topic: str) -> None:
    cluster.kafka.admin(
        tools, "kafka-topics", "--create", "--topic", topic, "--partitions", 4, "--replication-factor", 2
    )


@pytest.mark.parametrize(
    "dynamic",
    [
        pytest.param(False, id="static quorum", marks=pytest.mark.smoke),
        pytest.param(True, id="dynamic quorum", marks=pytest.mark.extended),
    ],
)
def test_brokers_fail_over_and_return(tmp_path: Path, dynamic: bool) -> None:
    options = KraftOptions(brokers=2, controllers=1, combined=False, dynamic_quorum=dynamic)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        create(cluster, tools, "t")
        cluster.until_all(tools, "t", 4, lambda leader, isr: leader in (1, 2) and isr == {1, 2})
        first, _ = cluster.brokers
        first.kill()
        cluster.until_all(tools, "t", 4, lambda leader, isr: leader == 2 and isr == {2})
        first.start()
        first.await_started()
        cluster.until_all(tools, "t", 4, lambda leader, isr: leader == 2 and isr == {1, 2})
        cluster.kafka.admin(tools, "kafka-topics", "--delete", "--topic", "t")
        cluster.until_listed(tools)


@pytest.mark.extended
def test_kafkas_controller_takes_over_and_hands_back(tmp_path: Path) -> None:
    """Each continues on the directory of the other, while the brokers run on."""
    options = KraftOptions(brokers=2, controllers=1, combined=False)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        create(cluster, tools, "t")
        cluster.resign()
        cluster.kafkas_controller.start()
        create(cluster, tools, "from-kafka")
        cluster.until_all(tools, "t", 4, lambda leader, isr: leader in (1, 2) and isr == {1, 2})
        cluster.kafkas_controller.stop()
        controller = cluster.lead()
        create(cluster, tools, "from-kframe")
        assert controller.node is not None
        assert controller.node.quorum.epoch >= 3
        assert set(controller.node.metadata.topics.index_by_name) == {"t", "from-kafka", "from-kframe"}
        cluster.until_listed(tools, "from-kafka", "from-kframe", "t")
        assert controller.node.loop is not None
        assert controller.node.loop.failure is None


@pytest.mark.extended
def test_tools_reach_the_controller_and_brokers_forward_to_it(tmp_path: Path) -> None:
    """Kafka's tools ask kframe itself (``--bootstrap-controller``), and through a broker (``--bootstrap-server``)."""
    options = KraftOptions(brokers=1, controllers=1, combined=False, release="4.0-IV3")
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        assert cluster.controller is not None
        assert cluster.controller.node is not None
        (address,) = cluster.controller.addresses.values()
        controller_id = cluster.controller.node_id
        status = tools.run("kafka-metadata-quorum", "--bootstrap-controller", address, "describe", "--status")
        assert f"LeaderId: {controller_id}" in " ".join(status.split())
        features = tools.run("kafka-features", "--bootstrap-controller", address, "describe")
        assert "metadata.version" in features
        assert "4.0-IV3" in features
        upgrade = ("upgrade", "--feature", "metadata.version=26")
        assert "metadata.version was upgraded to 26" in cluster.kafka.admin(tools, "kafka-features", *upgrade)
        assert cluster.controller.node.metadata.metadata_version == 26
        downgrade = ("downgrade", "--feature", "metadata.version=22")
        with pytest.raises(ToolError, match="22"):
            tools.run("kafka-features", "--bootstrap-controller", address, *downgrade)
        assert cluster.controller.node.metadata.metadata_version == 26


@pytest.mark.extended
@pytest.mark.parametrize("level", ["3.9-IV0", "4.0-IV3", "4.1-IV1", "4.3-IV0", "4.4-IV2"])
def test_directories_are_formatted_as_kafka_formats_them(tmp_path: Path, level: str) -> None:
    cluster = KraftCluster(tmp_path / "nodes", KraftOptions(controllers=1, combined=False, release=level))
    (node,) = cluster.controllers.values()
    kafkas = read_checkpoint(node.metadata_log / BOOTSTRAP_ID.file_name).records()
    config = node_config(keys_of(node))
    own = replace(config, directory=tmp_path / "own", directories=(tmp_path / "own",))
    format_node(own, CLUSTER_ID, default_levels(parse_level(level) or 0), standalone=False, now=0)
    assert read_checkpoint(tmp_path / "own" / LOG_DIRECTORY / BOOTSTRAP_ID.file_name).records() == kafkas


@pytest.mark.extended
def test_scram_users_are_formatted_as_kafka_formats_them(tmp_path: Path) -> None:
    user = 'SCRAM-SHA-512=[name=ann,password="a b",salt=W22ZaJ0SNY7soEsUEjb6gQ==,iterations=8192]'
    options = KraftOptions(controllers=1, combined=False, format_arguments=("--add-scram", user))
    cluster = KraftCluster(tmp_path / "nodes", options)
    (node,) = cluster.controllers.values()
    kafkas = read_checkpoint(node.metadata_log / BOOTSTRAP_ID.file_name).records()
    config = node_config(keys_of(node))
    own = replace(config, directory=tmp_path / "own", directories=(tmp_path / "own",))
    level = kafkas[0].record
    assert isinstance(level, records.FeatureLevelRecord)
    levels = default_levels(level.feature_level)
    users = scram_users([user], level.feature_level)
    format_node(own, CLUSTER_ID, levels, users, standalone=False, now=0)
    assert read_checkpoint(tmp_path / "own" / LOG_DIRECTORY / BOOTSTRAP_ID.file_name).records() == kafkas


def configs_at(tools: KafkaTools, address: str, kind: str, name: str) -> dict[str, str]:
    """The settings that ``kafka-configs`` gets from a controller, with their synonyms, by name."""
    entity = ("--entity-type", kind, "--entity-name", name)
    output = tools.run("kafka-configs", "--bootstrap-controller", address, "--describe", *entity, "--all")
    entries = (line.strip().partition("=") for line in output.splitlines() if line.startswith("  "))
    return {name: rest for name, _, rest in entries if name not in ONLY_OF_KAFKA}


def answers(tools: KafkaTools, address: str) -> bool:
    """Whether a controller answers the tools."""
    try:
        tools.run("kafka-features", "--bootstrap-controller", address, "describe")
    except ToolError:
        return False
    return True


@pytest.mark.extended
def test_configurations_are_described_as_kafka_describes_them(tmp_path: Path) -> None:
    """kframe and Kafka's controller say the same about the same file and directory."""
    options = KraftOptions(brokers=1, controllers=1, combined=False)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        kafka = cluster.kafka
        topic = ("--create", "--topic", "t", "--partitions", 1, "--replication-factor", 1)
        kafka.admin(tools, "kafka-topics", *topic, "--config", "cleanup.policy=compact")
        alter = partial(kafka.admin, tools, "kafka-configs", "--alter", "--entity-type", "brokers")
        alter("--entity-default", "--add-config", "log.retention.ms=7")
        alter("--entity-name", "1", "--add-config", "log.cleaner.threads=2")
        described = [("brokers", str(cluster.kafkas_controller.id)), ("topics", "t"), ("groups", "g")]
        address = cluster.kafkas_controller.controller_address
        own = {entity: configs_at(tools, address, *entity) for entity in described}
        cluster.resign()
        cluster.kafkas_controller.start()
        # It has started before it has read the level of its log, which tools ask for.
        wait_until(lambda: answers(tools, address))
        for entity in described:
            kafkas = configs_at(tools, address, *entity)
            assert len(kafkas) > 15
            names = own[entity].keys() | kafkas.keys()
            assert {name: own[entity].get(name) for name in names if own[entity].get(name) != kafkas.get(name)} == {}
            assert own[entity] == kafkas


@pytest.mark.extended
def test_client_quotas_limit_creations(tmp_path: Path) -> None:
    options = KraftOptions(brokers=1, controllers=1, combined=False)
    with LedCluster(tmp_path / "nodes", options) as cluster, KafkaTools(tmp_path / "tools") as tools:
        kafka = cluster.kafka
        user = ("--entity-type", "users", "--entity-name", "ANONYMOUS")
        kafka.admin(tools, "kafka-configs", "--alter", *user, "--add-config", "controller_mutation_rate=0.001")
        wait_until(lambda: "controller_mutation_rate=0.001" in kafka.admin(tools, "kafka-configs", "--describe", *user))
        create_with = partial(kafka.admin, tools, "kafka-topics", "--create", "--partitions", 4, "--topic")
        create_with("first")
        with pytest.raises(ToolError, match="throttling quota has been exceeded"):
            create_with("second")
        kafka.admin(tools, "kafka-configs", "--alter", *user, "--delete-config", "controller_mutation_rate")
        create_with("third")
        cluster.until_listed(tools, "first", "third")
