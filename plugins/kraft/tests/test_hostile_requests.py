"""Malformed frames, and well-formed requests with any values, of each API that the controller offers.

Each gets a response or a closed connection, and none makes a decision or a handler fail: the controller leads on, and
another one can start on its log.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Final

import pytest
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.server.connection_rate import RATE_KEY
from kframe_kraft.server.serving import ServedController

from kframe.plugin.kraft_controller import KraftSettings
from verification.kafka_wire.client import Client
from verification.kafka_wire.messages import NEVER_WHOLE, WAYS, all_answers, answers, malformed_frames
from verification.kraft.hostile import ALICE, LOOPBACK, drawn_request, known_values, mutated_request, valid_requests
from verification.kraft.served_controller import CONFIG, FakeBroker, address, connected, formatted, served

CONFIGURED: Final = {
    **CONFIG,
    RATE_KEY: "0",  # Every frame must reach the parser, however fast the machine connects.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ENVELOPE: Final = 58
#: Requests of each API between two repairs of the cluster.
BETWEEN: Final = 3

Versions = Mapping[int, Sequence[int]]


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[ServedController]:
    with served(formatted(tmp_path), KraftSettings(node_id=9), config=CONFIGURED) as started:
        prepare(started)
        yield started


def prepare(controller: ServedController) -> None:
    """Register brokers and create a topic, unless they are there."""
    for broker_id in range(3):
        fake = FakeBroker(connected(controller), broker_id)
        with closing(fake.client):
            fake.register()
            fake.heartbeat(fake.epoch)
    with closing(connected(controller)) as client:
        topic = {"name": "orders", "num_partitions": 2, "replication_factor": 3, "assignments": [], "configs": []}
        client.ask(19, {"topics": [topic], "timeout": 1, "validate_only": False})


@pytest.fixture
def where(controller: ServedController) -> str:
    return ":".join(map(str, address(controller)))


@pytest.fixture
def versions(where: str) -> Versions:
    """The versions of each API that the controller offers."""
    with Client(where) as client:
        offered = client.ask(18, 4, client_software_name="a", client_software_version="1")["api_keys"]
    return {each["api_key"]: range(each["min_version"], each["max_version"] + 1) for each in offered}


@pytest.fixture
def no_errors(controller: ServedController, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing fails, and what was written is a log that a controller starts on."""
    yield
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not errors, [(record.getMessage(), record.exc_info) for record in errors[:3]]
    assert controller.failure is None
    prepare(controller)
    end = controller.log_end
    controller.stop()
    assert controller.node is not None
    with served(controller.node.log.directory.parent, config=CONFIGURED) as again:
        assert again.log_end > end


def forwarded(frame: bytes) -> bytes:
    """A request as a broker forwards it for alice."""
    fields = {"request_data": frame[4:], "request_principal": ALICE, "client_host_address": LOOPBACK}
    return codec.encode_request(ENVELOPE, 0, 1, "a", fields)


def test_valid_requests_are_answered(controller: ServedController, where: str, versions: Versions) -> None:
    """Those that are mutated below."""
    with Client(where) as client:
        for api_key, fields in valid_requests(known_values(controller)):
            assert client.ask(api_key, versions[api_key][-1], **fields)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("no_errors")
def test_malformed_frames_are_refused(way: str, where: str, versions: Versions) -> None:
    respond, peak = all_answers(where, malformed_frames(way, 1, versions))
    assert respond.keys() == versions.keys()
    assert way not in NEVER_WHOLE or not any(respond.values())
    assert peak < 64 * 2**20


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.extended)])
@pytest.mark.usefixtures("no_errors")
def test_any_values_are_decided(rounds: int, controller: ServedController, where: str, versions: Versions) -> None:
    chance = Random(rounds)
    cases = [(api_key, version) for api_key, offered in versions.items() for version in offered] * rounds
    chance.shuffle(cases)
    for number, (api_key, version) in enumerate(cases):
        if number % len(versions) == 0:
            prepare(controller)
        fields = drawn_request(api_key, version, chance, known_values(controller))
        frame = codec.encode_request(api_key, version, 1, "a", fields)
        answers(where, forwarded(frame) if chance.random() < 0.3 else frame)


@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=pytest.mark.extended)])
@pytest.mark.usefixtures("no_errors")
def test_mutated_values_are_decided(rounds: int, controller: ServedController, where: str, versions: Versions) -> None:
    chance = Random(rounds)
    for number in range(rounds):
        if number % BETWEEN == 0:
            prepare(controller)
        for api_key, fields in valid_requests(known_values(controller)):
            frame = mutated_request(api_key, versions[api_key][-1], fields, chance, known_values(controller))
            answers(where, forwarded(frame) if chance.random() < 0.2 else frame)
