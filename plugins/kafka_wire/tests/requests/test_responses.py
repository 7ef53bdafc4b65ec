"""Responses byte by byte: the kernel against its reference implementation, and malformed input."""

from __future__ import annotations

import struct
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kframe_kafka_wire import _responses
from kframe_kafka_wire.requests.responses import read_response
from kframe_kafka_wire.sandbox.fake_broker import Received, encode_reply

from kframe.errors import ErrorCode
from kframe.model.events import StopReplicaResponseReceived, UpdateMetadataResponseReceived
from verification.kafka_wire.fuzz.decoders import pending_request, scan
from verification.reference import responses as reference_responses

pytestmark = pytest.mark.kernel

#: (API key, version) of all control requests.
VERSIONS = [(4, version) for version in range(8)] + [(5, version) for version in range(5)]
TOPICS = ["a", "bb", "a-topic-of-another-length"]
#: Errors by topic and partition.
ERRORS = st.dictionaries(
    st.tuples(st.sampled_from(TOPICS), st.integers(0, 2**31 - 1)),
    st.sampled_from([0, 0, 0, 56, 74, -1]),
)


def reply_to(api: tuple[int, int], errors: dict[tuple[str, int], int]) -> bytes:
    ids = [{"topic_name": topic, "topic_id": uuid.UUID(int=len(topic)).bytes} for topic, _ in errors]
    return encode_reply(Received(*api, 7, None, {"topic_states": ids}), 0, errors)


@given(st.sampled_from(VERSIONS), ERRORS, st.integers(-2, 2))
def test_kernel_returns_errors_of_a_response(
    api: tuple[int, int], errors: dict[tuple[str, int], int], off: int
) -> None:
    reply, max_partitions = reply_to(api, errors), max(len(errors) + off, 0)
    end, entries, counts = scan(_responses, *api, reply, max_partitions)
    assert (end, entries, counts) == scan(reference_responses, *api, reply, max_partitions)
    if max_partitions < len(errors):
        assert end == -1
        return
    in_error = {partition: error for partition, error in errors.items() if error}
    assert (end, counts) == (len(reply), [len(errors), len(in_error)])
    assert sorted(entry[2:] for entry in entries) == sorted(
        [partition, error] for (_, partition), error in in_error.items()
    )


@pytest.mark.parametrize(
    ("part", "error", "batch"), [(slice(0, 2), 0, 0), (slice(2, 4), 0, 7), (slice(0, 2), -1, 7), (slice(0, 4), 11, 7)]
)
def test_only_the_last_part_of_a_batch_acknowledges_it(part: slice, error: int, batch: int) -> None:
    """An error of any part refuses the batch."""
    request = pending_request(6, 5, 4)
    request = request._replace(content=replace(request.content, batch=7), part=part)
    response = read_response(request, struct.pack(">ih", 7, error))
    assert isinstance(response, UpdateMetadataResponseReceived)
    assert (response.batch, response.controller_epoch) == (batch, 1)


def test_deletions_missing_in_response_are_not_complete() -> None:
    half = read_response(pending_request(5, 4, 2), reply_to((5, 4), {("a", 0): 0}))
    assert isinstance(half, StopReplicaResponseReceived)
    assert (half.error, half.rows.tolist()) == (ErrorCode.UNKNOWN_SERVER_ERROR, [0, 1])
    assert read_response(pending_request(5, 4, 2), reply_to((5, 4), {})) is None


@pytest.mark.parametrize("api", VERSIONS)
def test_valid_response_fits_the_size_limit(api: tuple[int, int]) -> None:
    name = "n" * 249
    errors = {(name, partition): -1 for partition in range(50)}
    assert len(reply_to(api, errors)) <= pending_request(*api, 50).reply_bytes_max
