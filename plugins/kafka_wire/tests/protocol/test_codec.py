"""Encoding and decoding of messages, compared with kio's encoder, and malformed input.

``test_fuzz`` decodes mutated messages.
"""

from __future__ import annotations

import io
import random
import struct
from typing import Any

import pytest
from kframe_kafka_wire.protocol import codec
from kframe_kafka_wire.protocol.errors import CodecError
from kio.serial import entity_reader, entity_writer

from verification.kafka_wire.messages import draw, every_version

EVERY = list(every_version())
DIRECTIONS = ("request", "response")


def encoded(api_key: int, version: int, direction: str, chance: random.Random) -> tuple[dict[str, Any], bytes]:
    """A random message, and its bytes with size."""
    if direction == "request":
        fields = draw(codec.request_class(api_key, version), chance)
        return fields, codec.encode_request(api_key, version, 7, "someone", fields)
    fields = draw(codec.response_class(api_key, version), chance)
    return fields, codec.encode_response(api_key, version, 7, fields)


def decoded(api_key: int, version: int, direction: str, frame: bytes) -> dict[str, Any]:
    """Decode bytes without size."""
    if direction == "request":
        return codec.decode_request(codec.decode_header(frame), frame)
    return codec.decode_response(api_key, version, frame)[1]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_version_round_trips_and_equals_kio(direction: str) -> None:
    chance = random.Random(1)
    for api_key, version in EVERY:
        entity = (
            codec.request_class(api_key, version) if direction == "request" else codec.response_class(api_key, version)
        )
        for _ in range(2):
            fields, message = encoded(api_key, version, direction, chance)
            assert struct.unpack_from(">i", message)[0] == len(message) - 4
            assert decoded(api_key, version, direction, message[4:]) == fields, (api_key, version)
            header, before = entity_reader(entity.__header_schema__)(message, 4)
            theirs = io.BytesIO()
            entity_writer(entity.__header_schema__)(theirs, header)
            value, size = entity_reader(entity)(message, 4 + before)
            assert 4 + before + size == len(message), (api_key, version)
            entity_writer(entity)(theirs, value)
            assert theirs.getvalue() == message[4:], (api_key, version)


#: Bodies of Metadata requests, version 12 or 4, that end the process or pass unnoticed in kio's decoder.
HOSTILE = {
    "an array of two thousand million": (12, b"\xff\xff\xff\xff\x0f"),
    "an array of more than 32 bits": (12, b"\xff\xff\xff\xff\x7f"),
    "a number without an end": (12, b"\xff" * 20),
    "nothing": (12, b""),
    "a text that is not UTF-8": (12, b"\x02" + bytes(16) + b"\x03\xff\xfe\x00\x00\x00\x00"),
    "as many tagged fields": (12, b"\x00\x00\x00\xff\xff\xff\xff\x0f"),
    "a tagged field of as many bytes": (12, b"\x00\x00\x00\x01\x63\xff\xff\xff\xff\x0fab"),
    "a negative array": (4, b"\xff\xff\xff\xfe\x00"),
    "the largest array": (4, b"\x7f\xff\xff\xff\x00"),
    "a negative text": (4, b"\x00\x00\x00\x01\xff\xf0\x00"),
    "no text where there must be one": (4, b"\x00\x00\x00\x01\xff\xff\x00"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_malformed_message_is_refused(name: str) -> None:
    version, body = HOSTILE[name]
    head = struct.pack(">hhih", 3, version, 7, -1) + (b"\x00" if version >= 9 else b"")
    header = codec.decode_header(head + body)
    with pytest.raises(CodecError):
        codec.decode_request(header, head + body)


def test_empty_tagged_array_equals_an_omitted_field() -> None:
    """A heartbeat with an empty list of dead log directories, found by fuzzing (seed 1, case 312873)."""
    frame = codec.encode_request(63, 1, 7, "someone", {"broker_id": 1})[4:]
    explicit = frame[:-1] + b"\x01\x00\x01\x01"
    bodies = [codec.decode_request(codec.decode_header(request), request) for request in (frame, explicit)]
    assert bodies[0] == bodies[1]
    assert bodies[1]["offline_log_dirs"] == ()


def test_omitted_tagged_struct_is_its_default_as_plain_data() -> None:
    """A Fetch of a client that is no replica has no ``ReplicaState`` (tag 1)."""
    frame = codec.encode_request(1, 17, 7, "someone", {"max_wait": 1, "min_bytes": 1, "topics": []})[4:]
    body = codec.decode_request(codec.decode_header(frame), frame)
    assert body["replica_state"] == {"replica_id": -1, "replica_epoch": -1}
    body["replica_state"] = dict(body["replica_state"])
    assert codec.encode_request(1, 17, 7, "someone", body)[4:] == frame


def test_unknown_tagged_fields_are_skipped() -> None:
    head = struct.pack(">hhih", 3, 12, 7, -1) + b"\x01\x07\x02hi"
    frame = head + b"\x00\x01\x00\x01\x63\x02ab"
    header = codec.decode_header(frame)
    assert header.client_id is None
    assert codec.decode_request(header, frame) == {
        "topics": None,
        "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": False,
    }


def test_trailing_bytes_are_ignored_in_requests_and_refused_in_responses() -> None:
    """librdkafka 2.16 sends such a request for all topics. It has null, then three bytes of an unused array length."""
    request = bytes.fromhex("0003000c00000003000772646b61666b6100" + "00000000010000")
    body = codec.decode_request(codec.decode_header(request), request)
    assert body["topics"] is None
    response = codec.encode_response(7, 3, 1, {"error_code": 0, "remaining_partitions": []})[4:]
    assert codec.decode_response(7, 3, response)[0] == 1
    with pytest.raises(CodecError, match="behind the end"):
        codec.decode_response(7, 3, response + b"more")


def test_common_header_fields_of_unknown_version_are_decoded() -> None:
    header = codec.decode_header(struct.pack(">hhi", 18, 99, 5) + b"\xff\xff\xff")
    assert (header.api_key, header.api_version, header.correlation_id) == (18, 99, 5)
    assert not codec.known(18, 99)


def test_a_controlled_shutdown_of_version_0_has_no_client_id() -> None:
    message = codec.encode_request(7, 0, 1, "not sent", {"broker_id": 3})
    assert message == struct.pack(">ihhii", 12, 7, 0, 1, 3)


def test_message_above_value_limit_is_refused() -> None:
    count = 3_000_000
    body = struct.pack(">i", count) + b"\x00\x00" * count  # Topics without a name.
    frame = struct.pack(">hhih", 3, 4, 7, -1) + body + b"\x00"
    with pytest.raises(CodecError, match="values"):
        codec.decode_request(codec.decode_header(frame), frame)


def test_a_value_that_does_not_fit_its_field_is_refused() -> None:
    with pytest.raises(CodecError):
        codec.encode_request(7, 3, 1, None, {"broker_id": 2**40})
