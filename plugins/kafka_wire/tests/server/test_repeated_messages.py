"""Repeated requests are decoded once, and equal responses encoded once, with the same result as each alone."""

from __future__ import annotations

from typing import Any

import pytest
from kframe_kafka_wire.protocol.codec import decode_header, decode_request, encode_request, encode_response
from kframe_kafka_wire.server.repeated import RepeatedMessages

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
    messages = RepeatedMessages()
    decoded = messages.body(messages.header(first), first)
    header = messages.header(second)
    body = messages.body(header, second)
    assert header == decode_header(second)
    assert body == decode_request(header, second)
    assert (body is decoded) == is_shared


@pytest.mark.parametrize(
    ("second", "fields"),
    [
        (HEARTBEAT, {"error_code": 0, "is_caught_up": True, "is_fenced": False}),
        (HEARTBEAT, {"error_code": 0, "is_caught_up": True, "is_fenced": True}),
        (HEARTBEAT, {"error_code": 77, "is_caught_up": True, "is_fenced": False}),
        ((63, 0), {"error_code": 0, "is_caught_up": True, "is_fenced": False}),
        (FETCH, {"error_code": 0, "responses": []}),
    ],
)
def test_response_is_encoded_as_alone(second: tuple[int, int], fields: dict[str, Any]) -> None:
    messages = RepeatedMessages()
    header = decode_header(frame(HEARTBEAT, 1, BEAT))
    messages.response(header, {"error_code": 0, "is_caught_up": True, "is_fenced": False})
    header = decode_header(frame(second, -7, {}))
    assert messages.response(header, fields) == encode_response(*second, -7, fields)
