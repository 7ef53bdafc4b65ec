"""Malformed frames over a socket. They cause a response or a closed connection, and do not affect other clients."""

from __future__ import annotations

import random
import struct
import tracemalloc
from collections.abc import Iterator

import pytest
from kframe_kafka_wire.apis.table import APIS
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.server.connection_rate import RATE_KEY

from kframe.testing.clusters import healthy
from verification.kafka_wire.client import Client
from verification.kafka_wire.messages import NEVER_WHOLE, WAYS, all_answers, answers, malformed_frames
from verification.kafka_wire.served import Served

pytestmark = pytest.mark.kernel

MOST = 1_000_000


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    config = {
        "socket.request.max.bytes": str(MOST),
        "auto.create.topics.enable": "false",
        RATE_KEY: "0",  # Every frame must reach the parser, however fast the machine connects.
    }
    with Served({"t": [healthy(1, 2), healthy(2, 1)]}, config=config) as served:
        yield served


@pytest.fixture
def bystander(served: Served) -> Iterator[Client]:
    """Another client, which is served before and afterwards."""
    with served.client() as client:
        assert client.ask(3, 12, topics=None)["controller_id"] == 1000
        yield client
        response = client.ask(3, 12, topics=[{"name": "t"}])
        assert response["topics"][0]["error_code"] == 0
        assert len(response["topics"][0]["partitions"]) == 2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("bystander")
def test_malformed_frames_of_every_api(way: str, seed: int, served: Served) -> None:
    (address,) = served.server.addresses.values()
    respond, peak = all_answers(address, malformed_frames(way, seed))
    assert respond.keys() == APIS.keys()
    assert way not in NEVER_WHOLE or not any(respond.values())
    assert peak < 64 * 2**20


#: Replacements for the size of a frame.
SIZES = {"negative": -1, "least": -(2**31), "largest": 2**31 - 1, "one more than allowed": MOST + 1}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.usefixtures("bystander")
def test_invalid_frame_sizes_are_refused(name: str, served: Served) -> None:
    with served.client() as client:
        client.send(struct.pack(">i", SIZES[name]) + b"x" * 100)
        assert client.ended()


@pytest.mark.usefixtures("bystander")
def test_memory_is_allocated_as_a_frame_arrives(served: Served) -> None:
    tracemalloc.start()
    waiting = [served.client() for _ in range(50)]
    try:
        for client in waiting:
            client.send(struct.pack(">i", MOST) + b"x")
        with served.client() as other:
            assert other.ask(18, 0)["error_code"] == 0
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()
        for client in waiting:
            client.socket.close()


@pytest.mark.usefixtures("bystander")
def test_connections_closed_within_a_frame(served: Served) -> None:
    (address,) = served.server.addresses.values()
    message = codec.encode_request(3, 12, 1, "x", {"topics": None})
    assert not any(answers(address, message[:length]) for length in range(len(message)))


@pytest.mark.usefixtures("bystander")
def test_random_bytes(served: Served) -> None:
    (address,) = served.server.addresses.values()
    chance = random.Random(9)
    for _ in range(200):
        answers(address, chance.randbytes(chance.randrange(1, 300)))
