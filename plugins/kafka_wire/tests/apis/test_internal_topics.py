"""Missing internal topics are created with the sizes in the settings of a broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kframe_kafka_wire.sandbox.fake_broker import DESCRIBE_CONFIGS, FakeBroker

from verification.kafka_wire.fake_cluster import settings_response
from verification.kafka_wire.served import Served


@pytest.fixture
def broker(request: pytest.FixtureRequest, fakes: Callable[..., FakeBroker]) -> FakeBroker:
    broker = fakes()
    broker.responses[DESCRIBE_CONFIGS] = settings_response(*request.param)
    return broker


def requested_keys(broker: FakeBroker) -> list[list[str]]:
    return [request.body["resources"][0]["configuration_keys"] for request in broker.others]


OFFSETS = {
    "offsets.topic.num.partitions": "7",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.segment.bytes": "4242",
}


@pytest.mark.parametrize("broker", [(OFFSETS,)], indirect=True)
def test_a_missing_internal_topic_is_created_with_broker_settings(broker: FakeBroker) -> None:
    with Served({}, [broker.registration()]) as served, served.client() as client:
        coordinator = client.ask(10, 3, key="g", key_type=0)
        assert (coordinator["error_code"], "is being created" in coordinator["error_message"]) == (15, True)
        (topic,) = client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"]
        assert (topic["is_internal"], len(topic["partitions"])) == (True, 7)
        assert client.ask(10, 3, key="g", key_type=0)["node_id"] == 1
        entries = client.describe_topic("__consumer_offsets", version=1).values()
        values = {entry["name"]: entry["value"] for entry in entries if entry["config_source"] == 1}
        assert values == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "4242"}
    assert requested_keys(broker)[0] == list(OFFSETS)


@pytest.mark.parametrize("broker", [({}, 31), ({"offsets.topic.num.partitions": ""},)], indirect=True)
def test_internal_topic_is_not_created_if_no_broker_responds(broker: FakeBroker) -> None:
    """After a refusal the broker is not queried again at once. The number of client retries does not matter."""
    with Served({}, [broker.registration()]) as served, served.client() as client:
        for kind in (0, 1, 0):
            coordinator = client.ask(10, 3, key="g", key_type=kind)
            assert (coordinator["error_code"], "a broker will create it" in coordinator["error_message"]) == (15, True)
        assert client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"][0]["error_code"] == 3
        assert client.ask(3, 12, topics=None)["topics"] == []
    refused = broker.responses[DESCRIBE_CONFIGS]["results"][0]["error_code"]
    assert len(broker.others) == 1 if refused else broker.others


@pytest.mark.parametrize("broker", [(OFFSETS,)], indirect=True)
def test_own_settings_override_those_of_brokers(broker: FakeBroker) -> None:
    settings = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "2"}
    with Served({}, [broker.registration(), 2, 3], settings) as served, served.client() as client:
        assert client.ask(10, 0, key="g")["error_code"] == 15
        (topic,) = client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"]
        assert len(topic["partitions"]) == 3
        assert all(set(partition["replica_nodes"]) <= {1, 2, 3} for partition in topic["partitions"])
        assert client.ask(10, 0, key="g")["node_id"] in (1, 2, 3)
    assert broker.others == []
