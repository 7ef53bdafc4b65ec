"""Controller mutation quotas (KIP-599) through a real socket: codes, throttle times, and throttled connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kframe.testing.clusters import healthy
from verification.kafka_wire.client import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, change_topics
from verification.kafka_wire.served import FakeRecords, Served, config_record

#: A bucket of ten tokens that gains none during a test: a missing token takes a day.
RATE, DAY_MS = 1 / 86_400, 86_400_000
WINDOW = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": str(10 * 86_400 // 2)}
METADATA, FIND_COORDINATOR = 3, 10
DONE, THROTTLED = 0, 89


def quota(rate: object) -> str:
    return config_record(controller_mutation_rate=str(rate))


@pytest.fixture
def records() -> FakeRecords:
    return FakeRecords({"/config/users/ANONYMOUS": quota(RATE)})


@pytest.fixture
def served(records: FakeRecords) -> Iterator[Served]:
    config = {**WINDOW, "offsets.topic.num.partitions": "12", "offsets.topic.replication.factor": "1"}
    topics = {"grown": [healthy(1)], "large": [healthy(1)] * 12, "small": [healthy(1)]}
    with Served(topics, config=config, records=records) as served:
        yield served


def asked(served: Served, api_key: int, version: int, **fields: Any) -> dict[str, Any]:
    """The response on a new connection, which no earlier response has throttled."""
    with served.client() as client:
        return client.ask(api_key, version, **fields)


def changed(
    served: Served, api_key: int, version: int, counts: dict[str, int], client_id: str = "a-test", **fields: Any
) -> tuple[list[int], int]:
    """Codes, and the throttle time in days, of a request on a new connection."""
    with served.client(client_id=client_id) as client:
        codes, throttle_ms = change_topics(client, api_key, version, counts, **fields)
    return codes, round(throttle_ms / DAY_MS)


def create(served: Served, counts: dict[str, int], **fields: Any) -> tuple[list[int], int]:
    return changed(served, CREATE_TOPICS, 7, counts, **fields)


def test_a_strict_quota_accepts_a_burst_then_refuses(served: Served) -> None:
    assert create(served, {"a": 8, "b": 5, "c": 1}) == ([DONE, DONE, THROTTLED], 3)
    assert create(served, {"d": 1}) == ([THROTTLED], 3)
    assert served.controller.inspect(lambda cluster: cluster and cluster.topics.find("c")).result(30) is None


#: (API, last permissive version, first strict version, changes by each)
VERSIONS = [
    (CREATE_TOPICS, 5, 6, ({"new": 12}, {"newer": 12})),
    (CREATE_PARTITIONS, 2, 3, ({"grown": 13}, {"grown": 25})),
    (DELETE_TOPICS, 4, 5, ({"large": 12}, {"small": 1})),
]


@pytest.mark.parametrize("api_key, permissive, strict, changes", VERSIONS)
def test_versions_decide_whether_a_quota_refuses(
    api_key: int, permissive: int, strict: int, changes: tuple[dict[str, int], dict[str, int]], served: Served
) -> None:
    assert changed(served, api_key, permissive, changes[0]) == ([DONE], 2)
    assert changed(served, api_key, strict, changes[1]) == ([THROTTLED], 2)


def test_requests_that_change_nothing_are_not_charged(served: Served, records: FakeRecords) -> None:
    assert create(served, {"large": 100, "a b": 100}) == ([36, 17], 0)
    assert create(served, {"valid": 100}, validate_only=True) == ([DONE], 0)
    assert changed(served, CREATE_PARTITIONS, 3, {"grown": 1}) == ([37], 0)
    assert changed(served, CREATE_PARTITIONS, 3, {"grown": 100}, validate_only=True) == ([DONE], 0)
    assert changed(served, DELETE_TOPICS, 6, {"missing": 0}) == ([3], 0)
    assert create(served, {"a": 10, "b": 1}) == ([DONE, DONE], 0)


@pytest.mark.parametrize("api_key", [METADATA, FIND_COORDINATOR])
def test_topics_that_are_created_automatically_are_charged(api_key: int, served: Served) -> None:
    if api_key == METADATA:
        for number in range(12):
            topics = [{"name": f"auto-{number}", "topic_id": bytes(16)}]
            asked(served, METADATA, 12, topics=topics, allow_auto_topic_creation=True)
    else:
        assert asked(served, FIND_COORDINATOR, 3, key="group", key_type=0)["error_code"] == 15
    assert create(served, {"a": 1}) == ([THROTTLED], 2)


def test_other_clients_are_not_limited(served: Served, records: FakeRecords) -> None:
    records.records.clear()
    records.records["/config/clients/heavy%20app"] = quota(RATE)
    assert create(served, {"a": 11}, client_id="heavy app") == ([DONE], 0)
    assert create(served, {"b": 1}, client_id="heavy app") == ([THROTTLED], 1)
    assert create(served, {"b": 100}, client_id="light") == ([DONE], 0)


def test_a_changed_quota_applies_at_once(served: Served, records: FakeRecords) -> None:
    assert create(served, {"a": 12}) == ([DONE], 0)
    records.records["/config/users/ANONYMOUS"] = quota(RATE / 2)
    assert create(served, {"b": 1}) == ([THROTTLED], 4)
    for number, record in enumerate([quota("fast"), quota("nan"), "{}"]):
        records.records["/config/users/ANONYMOUS"] = record
        assert create(served, {f"unlimited-{number}": 1}) == ([DONE], 0)


def test_the_next_request_of_a_throttled_connection_waits(records: FakeRecords) -> None:
    """It waits longer than the connection may be idle here, so it gets no response."""
    with Served(records=records, config={**WINDOW, "connections.max.idle.ms": "2000"}) as served:
        with served.client() as client:
            assert change_topics(client, CREATE_TOPICS, 2, {"a": 12})[0] == [DONE]
            with pytest.raises(ConnectionError):
                client.ask(18, 0)
        assert served.server.metrics()['kframe_connections_dropped_total{reason="idle"}'] == 1
