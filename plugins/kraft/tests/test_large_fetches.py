"""Many records go from the file of the log to the socket, and arrive as they are in the log."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kframe_kafka_wire.connections.node import CONNECTION_ERRORS
from kframe_kafka_wire.protocol.metadata_log import TOPIC_ID
from kframe_kraft.server.serving import ServedController

from kframe.plugin.kraft import ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import KraftContext
from verification.kafka_wire.client import Client
from verification.kafka_wire.secured import certificates, tls
from verification.kraft.served_controller import address, connected, formatted

Serve = Callable[..., ServedController]
FETCH, VERSION = 1, 17
#: Records of about 1,000 bytes, in several batches.
BATCHES, RECORDS = 5, 200


def fetch(max_bytes: int) -> dict[str, Any]:
    partition = {"partition": 0, "current_leader_epoch": 1, "fetch_offset": 0, "last_fetched_epoch": 0}
    topic = {"topic_id": TOPIC_ID, "partitions": [{**partition, "log_start_offset": -1, "partition_max_bytes": 0}]}
    request = {"max_wait": 0, "min_bytes": 1, "max_bytes": max_bytes, "session_id": 0, "session_epoch": -1}
    return {**request, "topics": [topic], "forgotten_topics_data": [], "rack_id": ""}


def write_much(controller: ServedController) -> None:
    for number in range(BATCHES):
        controller.submit(partial(configured, number)).result(20)


def configured(number: int, context: KraftContext) -> ControllerResult[None]:
    configs = [
        records.ConfigRecord(resource_type=4, resource_name="", name=f"key.{number}.{index}", value="x" * 1000)
        for index in range(RECORDS)
    ]
    return ControllerResult([RecordAndVersion(config, 0) for config in configs], None, atomic=True)


def records_of(response: dict[str, Any]) -> bytes:
    ((partition,),) = [topic["partitions"] for topic in response["responses"]]
    assert partition["error_code"] == 0
    records: bytes = partition["records"]
    return records


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
@pytest.mark.parametrize("max_bytes", [2**16, 300_000, 2**31 - 1])
def test_many_records_arrive_as_they_are_in_the_log(
    tmp_path: Path, serve: Serve, protocol: str, max_bytes: int
) -> None:
    config = {"listener.security.protocol.map": f"CONTROLLER:{protocol}"}
    if protocol == "SSL":
        config |= tls(certificates(tmp_path), "server")
    controller = serve(formatted(tmp_path / "data"), config=config)
    write_much(controller)
    assert controller.node is not None
    expected = controller.node.log.read(0, max_bytes)
    context = ssl.create_default_context(cafile=tmp_path / "authority.pem") if protocol == "SSL" else None
    with Client("{}:{}".format(*address(controller)), context) as client:
        for _ in range(3):  # One response after another, so that each has its own length.
            assert records_of(client.ask(FETCH, VERSION, **fetch(max_bytes))) == expected
    assert (len(expected) > 10**6) == (max_bytes > 10**6)


def test_log_that_was_cut_ends_the_connection(tmp_path: Path, serve: Serve) -> None:
    controller = serve(formatted(tmp_path))
    write_much(controller)
    assert controller.node is not None
    (segment,) = controller.node.log.directory.glob("*.log")
    os.truncate(segment, 500_000)
    with closing(connected(controller)) as client, pytest.raises(CONNECTION_ERRORS):
        client.ask(FETCH, fetch(2**31 - 1))
