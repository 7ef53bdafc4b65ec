"""Repeated requests are decoded once, and equal responses encoded once, with the same result as each alone."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_kafka_wire.protocol.codec import Header, decode_header, decode_request, encode_request, encode_response
from kframe_kafka_wire.protocol.message_buffers import Buffers
from kframe_kafka_wire.server.repeated import RepeatedRequests, SharedResponses

HEARTBEAT, FETCH, METADATA, CREATE_TOKEN = (63, 1), (1, 17), (3, 12), (38, 3)
BEAT = {"broker_id": 1, "broker_epoch": 5, "current_metadata_offset": 7, "want_fence": False, "want_shut_down": False}
READ = {"max_wait": 500, "min_bytes": 1, "replica_state": {"replica_id": 1, "replica_epoch": -1}}


def frame(api: tuple[int, int], correlation_id: int, fields: dict[str, Any], client: str = "broker") -> bytes:
    return encode_request(*api, correlation_id, client, fields)[4:]


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        (frame(HEARTBEAT, 1, BEAT), frame(HEARTBEAT, 2, BEAT), True),
        (frame(HEARTBEAT, 2**31 - 1, BEAT), frame(HEARTBEAT, -(2**31), BEAT), True),
        (frame(FETCH, 1, READ), frame(FETCH, 2, READ), True),
        (frame(HEARTBEAT, 1, BEAT), frame(HEARTBEAT, 2, {**BEAT, "current_metadata_offset": 8}), False),
        (frame(HEARTBEAT, 1, BEAT), frame(HEARTBEAT, 2, BEAT, "other"), False),
        (frame(HEARTBEAT, 1, BEAT), frame((63, 0), 2, BEAT), False),
        (frame(HEARTBEAT, 1, BEAT), frame(FETCH, 2, READ), False),
        (frame(HEARTBEAT, 1, BEAT, "x" * 1024), frame(HEARTBEAT, 2, BEAT, "x" * 1024), False),
        (frame(METADATA, 1, {"topics": None}), frame(METADATA, 2, {"topics": None}), False),
        (frame(CREATE_TOKEN, 1, {"renewers": []}), frame(CREATE_TOKEN, 2, {"renewers": []}), False),
    ],
)
def test_request_is_decoded_as_alone(first: bytes, second: bytes, is_shared: bool) -> None:
    messages = RepeatedRequests()
    decoded = messages.body(messages.header(first), first)
    header = messages.header(second)
    body = messages.body(header, second)
    assert header == decode_header(second)
    assert body == decode_request(header, second)
    assert (body is decoded) == is_shared


STEADY = {"error_code": 0, "is_caught_up": True, "is_fenced": False}
RECORDS = bytes(range(256)) * 256


def joined(buffers: Buffers) -> bytes:
    return b"".join(buffer if isinstance(buffer, bytes) else buffer.read(0, len(buffer)) for buffer in buffers)


def fetched(records: bytes, high_watermark: int = 5) -> dict[str, Any]:
    partition = {
        "partition_index": 0,
        "error_code": 0,
        "high_watermark": high_watermark,
        "aborted_transactions": None,
        "records": records,
        "current_leader": {"leader_id": 9, "leader_epoch": 1},
    }
    return {"error_code": 0, "responses": [{"topic_id": bytes(16), "partitions": [partition]}]}


@pytest.mark.parametrize(
    ("api", "first", "second"),
    [
        (HEARTBEAT, STEADY, STEADY),
        (HEARTBEAT, STEADY, {**STEADY, "is_fenced": True}),
        ((63, 0), STEADY, STEADY),
        (FETCH, fetched(b""), fetched(b"")),
        (FETCH, fetched(RECORDS), fetched(RECORDS)),
        (FETCH, fetched(RECORDS), fetched(bytes(RECORDS))),
        (FETCH, fetched(RECORDS), fetched(RECORDS, 6)),
        (FETCH, fetched(RECORDS), fetched(RECORDS[1:] + b"x")),
        (FETCH, fetched(RECORDS), fetched(b"")),
        (METADATA, {"topics": [], "brokers": []}, {"topics": [], "brokers": []}),
    ],
)
def test_response_is_encoded_as_alone(api: tuple[int, int], first: dict[str, Any], second: dict[str, Any]) -> None:
    responses = SharedResponses()
    for correlation_id, fields in ((1, first), (-7, second), (2**31 - 1, first)):
        header = Header(*api, correlation_id, "broker", 0)
        assert joined(responses.encoded(header, fields)) == encode_response(*api, correlation_id, fields)


def test_records_are_not_copied() -> None:
    responses = SharedResponses()
    for correlation_id in range(3):
        (records,) = [
            buffer
            for buffer in responses.encoded(Header(*FETCH, correlation_id, None, 0), fetched(RECORDS))
            if len(buffer) == len(RECORDS)
        ]
        assert records is RECORDS


def test_responses_of_versions_are_encoded_apart() -> None:
    responses = SharedResponses()
    for version in (0, 1, 0):
        header = Header(63, version, 7, None, 0)
        assert joined(responses.encoded(header, STEADY)) == encode_response(63, version, 7, STEADY)
