"""Error responses of each API and version equal those of Kafka's own classes, which also decode kframe's responses."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from kframe_kafka_wire.access.session import BEFORE_LOGIN
from kframe_kafka_wire.apis.table import APIS, refusal
from kframe_kafka_wire.protocol import codec

import verification.kafka_wire.tools as tools_module
from verification.kafka_wire.messages import draw
from verification.zookeeper.kafka import client_command
from verification.zookeeper.process import Process

#: An error code that every API version may return.
CODE: Final = 31
#: Fields that are not compared, by API key. Kafka's getErrorResponse differs from its brokers in 39 and 40, where
#: ``KafkaApis`` always sends -1 as the time. In 50 it omits the user of each result.
NOT_COMPARED: Final = {39: {"expiry_timestamp"}, 40: {"expiry_timestamp"}, 50: {"user"}}
#: Bytes of a response header without tagged fields.
HEADER: Final = 4


class Kafka(Process):
    """Kafka's request and response classes, in a JVM."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        folder.mkdir(parents=True)
        (folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        source = Path(tools_module.__file__).parent / "Refusals.java"
        self._launch(client_command(source, folder), folder, piped=True)

    def compare(self, api_key: int, version: int, request: bytes, response: bytes) -> dict[str, Any]:
        """Kafka's error response to a request, and the error codes that its client reads from a response."""
        bodies = {"request": request, "response": response}
        texts = {name: base64.b64encode(data).decode() for name, data in bodies.items()}
        line = json.dumps({"key": api_key, "version": version, "code": CODE, **texts})
        return dict(json.loads(self._answer(line)))


@pytest.fixture(scope="module")
def kafka(needs_java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("refusals") / "kafka")
    yield kafka
    kafka.kill()


def legal(api_key: int, version: int, seed: int) -> dict[str, Any]:
    """A request of this version that Kafka's classes accept."""
    chance = random.Random(seed)
    fields = draw(codec.request_class(api_key, version), chance)
    for each in (*fields.get("creations", ()), *fields.get("filters", ()), fields):
        for name, value in {
            "resource_type": 2,
            "resource_type_filter": 2,
            "resource_pattern_type": 3,
            "pattern_type_filter": 3,
            "operation": 3,
            "permission_type": 3,
        }.items():
            if name in each:
                each[name] = value
    if "acks" in fields:
        fields["acks"] = 1
    if api_key == 0:  # The records of a Produce request must be valid.
        for topic in fields["topic_data"]:
            for partition in topic["partition_data"]:
                partition["records"] = b""
    for name in ("key_type", "match_type", "election_type"):
        if name in fields:
            fields[name] = 0
    if "users" in fields and fields["users"] is None:
        fields["users"] = [{"name": "u"}]  # getErrorResponse fails without users.
    for broker in fields.get("live_brokers", ()):
        for endpoint in broker.get("endpoints", ()):
            endpoint["security_protocol"] = 0
    return fields


def compared(value: Any, ignored: set[str]) -> Any:
    """A decoded message without texts, which differ, in sorted order."""
    if isinstance(value, dict):
        skipped = {"error_message", "throttle_time", *ignored}
        return {name: compared(each, ignored) for name, each in value.items() if name not in skipped}
    if isinstance(value, list | tuple):
        return sorted((compared(each, ignored) for each in value), key=repr)
    return value


@pytest.mark.parametrize("api_key", sorted(APIS.keys() - BEFORE_LOGIN), ids=codec.API_NAMES.get)
def test_error_response_equals_that_of_kafka(api_key: int, kafka: Kafka) -> None:
    for version in range(APIS[api_key].newest + 1):
        for seed in range(5):
            fields = legal(api_key, version, seed)
            frame = codec.encode_request(api_key, version, 0, None, fields)[4:]
            header = codec.decode_header(frame)
            body = codec.decode_request(header, frame)
            response = refusal(api_key, version, body, CODE, "refused")
            assert response is not None
            ours = codec.encode_response(api_key, version, 0, response)[4:]
            start = HEADER + codec.response_class(api_key, version).__header_schema__.__flexible__
            reference = kafka.compare(api_key, version, frame[header.body :], ours[start:])
            assert "error" not in reference, (version, reference, fields)
            theirs = codec.decode_response(api_key, version, ours[:start] + base64.b64decode(reference["refusal"]))[1]
            ignored = NOT_COMPARED.get(api_key, set())
            mine = codec.decode_response(api_key, version, ours)[1]
            assert compared(mine, ignored) == compared(theirs, ignored), version
            assert str(CODE) in reference["counts"] or not list(_codes(theirs)), version


def _codes(value: Any) -> Iterator[int]:
    """Every error code in a message."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name.endswith("error_code") and each:
                yield each
            yield from _codes(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _codes(each)
