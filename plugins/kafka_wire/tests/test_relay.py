"""What is passed on to a broker, frame by frame, and what happens when there is none or it dies."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from kframe_kafka_wire import codec
from kframe_kafka_wire.apis.table import NEWEST, RELAYED
from kframe_kafka_wire.testing.client import Client
from kframe_kafka_wire.testing.served import Served

from kframe.model.brokers import Endpoint, Registration
from kframe.testing.clusters import healthy


class FakeBroker:
    """Takes connections on loopback, and answers each frame with what ``answer`` makes of it; None hangs up."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self.seen: list[bytes] = []
        self.connections = 0
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while size := stream.read(4):
                frame = stream.read(*struct.unpack(">i", size))
                self.seen.append(frame)
                answer = self._answer(frame)
                if answer is None:
                    return
                connection.sendall(answer)


def versions(frame: bytes, ranges: dict[int, tuple[int, int]]) -> bytes:
    header = codec.decode_header(frame)
    keys = [{"api_key": key, "min_version": least, "max_version": most} for key, (least, most) in ranges.items()]
    return codec.encode_response(18, 0, header.correlation_id, {"api_keys": keys})


def ordinary(frame: bytes) -> bytes | None:
    """ApiVersions of an older broker; quotas; ACLs make it hang up."""
    header = codec.decode_header(frame)
    if header.api_key == 18:
        return versions(frame, {48: (0, 0), 29: (1, 9), 50: (0, 0)})
    if header.api_key == 29:
        return None
    entries = [{"entity": [{"entity_type": "user", "entity_name": "x"}], "values": [{"key": "k", "value": 1.5}]}]
    return codec.encode_response(48, header.api_version, header.correlation_id, {"entries": entries})


def served(*ports: int) -> Served:
    brokers = [
        Registration(one, 100 * one, (Endpoint("PLAINTEXT", "127.0.0.1", port),)) for one, port in enumerate(ports, 1)
    ]
    return Served({"t": [healthy(1)]}, brokers)


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    broker = FakeBroker(ordinary)
    yield broker
    broker.close()


def offered(client: Client) -> dict[int, tuple[int, int]]:
    keys = client.ask(18, 0)["api_keys"]
    return {one["api_key"]: (one["min_version"], one["max_version"]) for one in keys}


def test_frames_go_there_and_back_as_they_are(fake: FakeBroker) -> None:
    with served(fake.port) as world, world.client() as client:
        answer = client.ask(48, 0, components=[{"entity_type": "user", "match_type": 2}])
        assert answer["entries"][0]["values"] == [{"key": "k", "value": 1.5}]
        assert client.ask(48, 0)["error_code"] == 0
        sent = codec.encode_request(48, 0, 2, "a-test", {})
        assert fake.seen[-1] == sent[4:]
        assert fake.connections == 1  # one behind each connection of a client
        assert client.ask(60, 0)["controller_id"] == 1000  # what is ours we answer


def test_what_is_passed_on_is_offered_as_the_broker_offers_it(fake: FakeBroker) -> None:
    with served(fake.port) as world:
        for _ in range(3):
            with world.client() as client:
                found = offered(client)
        assert {key: found[key] for key in RELAYED & set(found)} == {48: (0, 0), 29: (1, 3), 50: (0, 0)}
        assert {key: most for key, (_, most) in found.items() if key not in RELAYED} == {
            key: most for key, most in NEWEST.items() if key not in RELAYED
        }
        assert len([one for one in fake.seen if codec.decode_header(one).api_key == 18]) == 1  # asked once
        with world.client() as client:
            offered(client)
            with pytest.raises(ConnectionError):
                client.ask(48, 1)  # which that broker does not have


def test_a_broker_that_hangs_up_ends_that_connection_and_no_other(fake: FakeBroker) -> None:
    with served(fake.port) as world, world.client() as client, world.client() as other:
        with pytest.raises(ConnectionError):
            client.ask(29, 1)
        assert other.ask(48, 0)["error_code"] == 0


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port: int = unused.getsockname()[1]
        return port


def test_a_broker_that_cannot_be_reached_is_passed_over(fake: FakeBroker) -> None:
    with served(closed_port(), closed_port(), fake.port) as world, world.client() as client:
        assert client.ask(48, 0)["error_code"] == 0


def test_without_any_broker_nothing_is_offered_and_the_connection_ends() -> None:
    with served(closed_port()) as world, world.client() as client:
        assert not RELAYED & set(offered(client))
        with pytest.raises(ConnectionError):
            client.ask(48, 0)
        with world.client() as other:
            assert other.ask(60, 0)["controller_id"] == 1000


@pytest.mark.parametrize("size", [-1, 2**31 - 1])
def test_sizes_that_no_answer_has_end_the_connection(size: int) -> None:
    def answer(frame: bytes) -> bytes:
        return struct.pack(">i", size)

    broker = FakeBroker(answer)
    try:
        with served(broker.port) as world, world.client() as client:
            assert not RELAYED & set(offered(client))
            with world.client() as other, pytest.raises(ConnectionError):
                other.ask(48, 0)
    finally:
        broker.close()


def test_where_nobody_knows_a_coordinator_a_broker_is_asked_so_that_it_creates_the_topic() -> None:
    """How large the topic is to be only brokers know here, and who asks us may ask nobody else."""

    def answer(frame: bytes) -> bytes:
        header = codec.decode_header(frame)
        return codec.encode_response(10, header.api_version, header.correlation_id, {"error_code": 15})

    broker = FakeBroker(answer)
    try:
        with served(broker.port) as world, Client(world.server.addresses["PLAINTEXT"]) as client:
            (told,) = client.ask(10, 4, key_type=1, coordinator_keys=["mine"])["coordinators"]
        asked = [codec.decode_request(codec.decode_header(one), one) for one in broker.seen]
    finally:
        broker.close()
    assert told["error_code"] == 15
    assert asked == [{"key": "mine", "key_type": 1}]


def test_a_broker_that_cannot_be_asked_for_a_coordinator_changes_no_answer() -> None:
    broker = FakeBroker(lambda _: None)
    try:
        with served(broker.port) as world, Client(world.server.addresses["PLAINTEXT"]) as client:
            assert client.ask(10, 1, key="mine", key_type=0)["error_code"] == 15
    finally:
        broker.close()
    assert len(broker.seen) == 1
