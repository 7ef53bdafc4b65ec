"""Responses of a standby, and limits of connections."""

from __future__ import annotations

import random
import select
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import pytest
from kframe_kafka_wire.apis.table import APIS
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.server.server import WireServer

from kframe.errors import ConfigError
from kframe.testing.clusters import healthy
from kframe.testing.waiting import until
from verification.kafka_wire.messages import draw
from verification.kafka_wire.served import PLAIN, FakeRecords, Served

PATIENCE_S: Final = 60.0


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Served({"t": [healthy(1)]}, standby=True) as served:
        assert not served.controller.status().active
        yield served


T = {"topic": "t", "partitions": [0]}
#: (API key, fields, path of the error code, code). Every version returns NOT_CONTROLLER there.
SHAPES: list[tuple[int, Mapping[str, Any], tuple[str | int, ...], int]] = [
    (7, {"broker_id": 1}, ("error_code",), 11),
    (56, {"broker_id": 1}, ("error_code",), 41),
    (67, {"broker_id": 1}, ("error_code",), 41),
    (19, {"topics": [{"name": "n"}]}, ("topics", 0, "error_code"), 41),
    (20, {"topic_names": ["t"], "topics": [{"name": "t"}]}, ("responses", 0, "error_code"), 41),
    (37, {"topics": [{"name": "t", "count": 2}]}, ("results", 0, "error_code"), 41),
    (43, {"topic_partitions": [T]}, ("replica_election_results", 0, "partition_result", 0, "error_code"), 41),
    (45, {"topics": [{"name": "t", "partitions": [{"partition_index": 0, "replicas": [1]}]}]}, ("error_code",), 41),
    (46, {"topics": None}, ("error_code",), 41),
    (57, {"feature_updates": [{"feature": "f", "max_version_level": 1}]}, ("error_code",), 41),
    (33, {"resources": [{"resource_type": 2, "resource_name": "t"}]}, ("responses", 0, "error_code"), 41),
    (44, {"resources": [{"resource_type": 4, "resource_name": ""}]}, ("responses", 0, "error_code"), 41),
    (22, {"transactional_id": None}, ("error_code",), 15),
]


@pytest.mark.parametrize("api_key, fields, path, code", SHAPES)
def test_refusals_have_the_error_where_clients_read_it(
    api_key: int, fields: Mapping[str, Any], path: tuple[str | int, ...], code: int, served: Served
) -> None:
    with served.client() as client:
        for version in range(APIS[api_key].newest + 1):
            response: Any = client.ask(api_key, version, **fields)
            for step in path:
                response = response[step]
            assert response == code, version


def test_a_standby_describes_configs_from_storage() -> None:
    records = FakeRecords(
        {
            "/brokers/topics/t": "{}",
            "/config/topics/t": '{"version":1,"config":{"retention.ms":"5"}}',
            "/config/brokers/<default>": '{"version":1,"config":{"log.segment.bytes":"77"}}',
        }
    )
    requested = [(2, "t", ["retention.ms", "segment.bytes"]), (2, "none", None), (2, "..", None), (4, "", None)]
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name, keys in requested
    ]
    with Served({"t": [healthy(1)]}, standby=True, records=records) as served, served.client() as client:
        results = client.ask(32, 4, resources=resources)["results"]
        assert [result["error_code"] for result in results] == [0, 3, 3, 0]
        configs = [
            [(each["name"], each["value"], each["config_source"]) for each in result["configs"]] for result in results
        ]
        assert configs[0] == [("retention.ms", "5", 1), ("segment.bytes", "77", 3)]
        assert configs[3] == [("log.segment.bytes", "77", 3)]


def test_refusals_name_the_controller(served: Served) -> None:
    with served.client() as client:
        assert "broker 1" in client.ask(19, 7, topics=[{"name": "n"}])["topics"][0]["error_message"]


def test_all_partitions_are_refused_as_a_whole(served: Served) -> None:
    with served.client() as client:
        assert client.ask(43, 2, topic_partitions=None)["error_code"] == 41


#: Requests for brokers and topics. Clients would believe an empty response.
NOT_KNOWN: list[tuple[int, int, Mapping[str, Any]]] = [
    (3, 0, {"topics": []}),
    (3, 12, {"topics": None}),
    (3, 12, {"topics": []}),
    (3, 12, {"topics": [{"name": "t"}]}),
    (60, 0, {}),
    (60, 1, {}),
]


@pytest.mark.parametrize("api_key, version, fields", NOT_KNOWN)
def test_a_standby_closes_connections_that_send_metadata(
    api_key: int, version: int, fields: Mapping[str, Any], served: Served
) -> None:
    with served.client() as client:
        assert client.ask(10, 3, key="g")["error_code"] == 15
        with pytest.raises(ConnectionError):
            client.ask(api_key, version, **fields)


def test_an_open_connection_gets_not_controller_after_a_resignation() -> None:
    with Served({"t": [healthy(1)]}) as served, served.client() as client:
        assert client.ask(46, 0, topics=None)["error_code"] == 0
        served.controller.stop()  # Without a controller, connections end.
        with pytest.raises(ConnectionError):
            client.ask(46, 0, topics=None)
        assert served.server.addresses == {}


# -- limits


def test_more_connections_than_allowed_are_refused() -> None:
    with Served(config={"max.connections": "3"}) as served:
        clients = [served.client() for _ in range(3)]
        for client in clients:
            assert client.ask(18, 0)["error_code"] == 0
        with served.client() as excess:
            assert excess.ended()
        clients[0].socket.close()
        while True:  # The server detects it after a while.
            with served.client() as another:
                try:
                    assert another.ask(18, 0)["error_code"] == 0
                    break
                except ConnectionError:
                    continue
        for client in clients[1:]:
            assert client.ask(18, 0)["error_code"] == 0
            client.socket.close()


def test_an_incomplete_frame_times_out() -> None:
    with Served(config={"connections.max.idle.ms": "50"}) as served, served.client() as client:
        with suppress(ConnectionError):  # The connection may have ended already.
            client.send(struct.pack(">i", 1000) + b"x")
        assert client.ended()


def test_frames_in_progress_share_the_memory_limit() -> None:
    config = {"socket.request.max.bytes": "400000", "queued.max.request.bytes": "500000"}
    with Served(config=config) as served:
        hoarders = [served.client() for _ in range(2)]
        ended = 0
        for client in hoarders:
            client.send(struct.pack(">i", 400_000))
            try:
                client.send(b"x" * 399_999)
            except ConnectionError:
                ended += 1
        with served.client() as other:
            assert other.ask(18, 0)["error_code"] == 0
        # One of them may continue. The other is disconnected.
        readable, _, _ = select.select([client.socket for client in hoarders], [], [], 0 if ended else PATIENCE_S)
        assert ended or readable
        for client in hoarders:
            client.socket.close()


@pytest.mark.extended
def test_a_client_that_never_reads_is_disconnected() -> None:
    with Served({"t": [healthy(1)] * 2000}, config={"connections.max.idle.ms": "200"}) as served:
        with served.client() as client:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            question = codec.encode_request(3, 12, 1, "x", {"topics": None})
            try:
                while True:
                    client.send(question)
            except (ConnectionError, TimeoutError):
                pass
        assert until(lambda: is_served(served))


def is_served(served: Served) -> bool:
    """Whether a new client gets a response before it has been idle for too long, as it may be on a busy machine."""
    with served.client() as client, suppress(ConnectionError):
        return bool(client.ask(18, 0)["error_code"] == 0)
    return False


# -- configuration

#: (settings, text in the error)
REFUSED: list[tuple[dict[str, str], str]] = [
    ({"socket.request.max.bytes": "many"}, "socket.request.max.bytes"),
    ({"connections.max.idle.ms": "0"}, "connections.max.idle.ms"),
    ({"listeners": "SASL_PLAINTEXT://:0", "inter.broker.listener.name": "SASL_PLAINTEXT"}, "sasl.enabled.mechanisms"),
    ({"listeners": "SSL://:0", "inter.broker.listener.name": "SSL"}, "ssl.keystore.location"),
]


@pytest.mark.parametrize("settings, named", REFUSED)
def test_settings_that_cannot_be_served_are_named(settings: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        WireServer({**PLAIN, **settings})


def test_address_in_use_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listeners = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match="listeners"):
            Served(config={"listeners": listeners})


def test_every_random_request_gets_a_response_of_a_standby(served: Served) -> None:
    chance = random.Random(5)
    ended = {api_key for api_key, _, _ in NOT_KNOWN}
    with served.client() as client:
        for api_key in APIS.keys() - ended:
            newest = APIS[api_key].newest
            fields = draw(codec.request_class(api_key, newest), chance)
            if api_key == 0:
                fields["acks"] = 1
            assert isinstance(client.ask(api_key, newest, **fields), dict)
