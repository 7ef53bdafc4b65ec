"""Internal topics that are missing, where nothing is passed on to brokers: made as large as a broker says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress

import pytest
from kframe_kafka_wire.codec import decode_header, decode_request, encode_response
from kframe_kafka_wire.testing.served import Served

from kframe.model.brokers import Endpoint, Registration

#: As on a listener with authentication.
ALONE: Mapping[str, str] = {"kframe.relay": "false"}


class Telling:
    """A broker that answers DescribeConfigs and nothing else."""

    def __init__(self, values: Mapping[str, str], code: int = 0) -> None:
        self.values, self.code = values, code
        self.asked: list[list[str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, connection.makefile("rb") as stream:
                    self._answer(connection, stream.read(int.from_bytes(stream.read(4), "big")))

    def _answer(self, connection: socket.socket, frame: bytes) -> None:
        header = decode_header(frame)
        (resource,) = decode_request(header, frame)["resources"]
        self.asked.append(resource["configuration_keys"])
        told = {
            "error_code": self.code, "error_message": None, "resource_type": 4, "resource_name": "1",
            "configs": [
                {"name": key, "value": value, "read_only": False, "config_source": 4, "is_sensitive": False,
                 "synonyms": ()}
                for key, value in self.values.items()
            ],
        }  # fmt: skip
        connection.sendall(encode_response(32, header.api_version, header.correlation_id, {"results": [told]}))


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Telling]:
    made = Telling(*request.param)
    yield made
    made.close()


def registered(broker: Telling) -> Registration:
    return Registration(1, 100, (Endpoint("PLAINTEXT", "127.0.0.1", broker.port),))


OFFSETS = {"offsets.topic.num.partitions": "7", "offsets.topic.replication.factor": "1",
           "offsets.topic.segment.bytes": "4242"}  # fmt: skip


@pytest.mark.parametrize("broker", [(OFFSETS,)], indirect=True)
def test_a_missing_one_is_made_as_a_broker_would_make_it(broker: Telling) -> None:
    with Served({}, [registered(broker)], ALONE) as world, world.client() as client:
        told = client.ask(10, 3, key="g", key_type=0)
        assert (told["error_code"], "is being created" in told["error_message"]) == (15, True)
        (topic,) = client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"]
        assert len(topic["partitions"]) == 7
        assert client.ask(10, 3, key="g", key_type=0)["node_id"] == 1
        resource = {"resource_type": 2, "resource_name": "__consumer_offsets", "configuration_keys": None}
        entries = client.ask(32, 1, resources=[resource])["results"][0]["configs"]
        values = {one["name"]: one["value"] for one in entries if one["config_source"] == 1}
        assert values == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "4242"}
    assert broker.asked == [list(OFFSETS)]


@pytest.mark.parametrize("broker", [({}, 31), ({"offsets.topic.num.partitions": ""},)], indirect=True)
def test_one_that_no_broker_tells_of_is_left_to_them(broker: Telling) -> None:
    """Who refuses is not asked again at once, however often clients ask."""
    with Served({}, [registered(broker)], ALONE) as world, world.client() as client:
        for _ in range(3):
            told = client.ask(10, 3, key="g", key_type=0)
            assert (told["error_code"], "a broker will create it" in told["error_message"]) == (15, True)
        assert client.ask(3, 12, topics=None)["topics"] == []
    assert broker.asked
    assert broker.code == 0 or len(broker.asked) == 1


@pytest.mark.parametrize("broker", [(OFFSETS,)], indirect=True)
def test_our_own_settings_come_first(broker: Telling) -> None:
    own = {"offsets.topic.num.partitions": "3", "offsets.topic.replication.factor": "1"}
    with Served({}, [registered(broker)], {**ALONE, **own}) as world, world.client() as client:
        client.ask(10, 3, key="g", key_type=0)
        (topic,) = client.ask(3, 12, topics=[{"name": "__consumer_offsets"}])["topics"]
        assert len(topic["partitions"]) == 3
    assert broker.asked == []
