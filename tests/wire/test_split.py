"""Requests are split below the byte limit: each partition is sent exactly once, and shared sections stay shared."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kframe.wire import EncodedRequest, sections
from tests.wire.cases import Case, broker, build, case_of, partition, random_case, topic
from tests.wire.content import EVERY_VERSION, kio_class, kio_decode
from tests.wire.encoding import CASES, body, encoded
from verification.support.properties import examples

pytestmark = pytest.mark.kernel


def entries(api: str, version: int, request: EncodedRequest) -> list[Any]:
    """Return the entry of each partition in a request, with the topic's name and id."""
    entity = kio_decode(kio_class(api, version), body(request))
    for flat in ("ungrouped_partition_states", "ungrouped_partitions"):
        if hasattr(entity, flat):
            return [(partition.topic_name, None, partition) for partition in getattr(entity, flat)]
    if hasattr(entity, "topics"):
        return [
            (topic.name, None, (number, entity.delete_partitions))
            for topic in entity.topics
            for number in topic.partition_indexes
        ]
    return [
        (topic.topic_name, getattr(topic, "topic_id", None), state)
        for topic in entity.topic_states
        for state in topic.partition_states
    ]


def check_split(case: Case, api: str, version: int, byte_limit: int) -> None:
    whole = encoded(*build(case), api, version)
    parts = encoded(*build(case), api, version, byte_limit)
    expected = [(request.broker, entry) for request in whole for entry in entries(api, version, request)]
    assert [(request.broker, entry) for request in parts for entry in entries(api, version, request)] == expected
    for part in parts:
        assert part.nbytes <= byte_limit or len(entries(api, version, part)) <= 1
    # A request without partitions is sent only if the batch has none.
    empty = Counter(request.broker for request in parts if not entries(api, version, request))
    assert empty == Counter(request.broker for request in whole if not entries(api, version, request))


@examples(0.6)
@given(case=CASES, byte_limit=st.integers(1, 3000))
def test_split_requests_have_same_content(case: Case, byte_limit: int) -> None:
    for api, version in EVERY_VERSION:
        check_split(case, api, version, byte_limit)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
@pytest.mark.parametrize("byte_limit", [2000, 9000])
def test_wide_topic_continues_in_next_request(api: str, version: int, byte_limit: int) -> None:
    case = random_case(Random(5), max_partitions=300)
    check_split(case, api, version, byte_limit)


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_request_at_byte_limit_is_not_split(api: str, version: int) -> None:
    case = random_case(Random(5), max_partitions=300)
    whole = encoded(*build(case), api, version)
    longest = max(request.nbytes for request in whole)
    # LeaderAndIsr reserves room for all live leaders of the batch in each request.
    room = 500 if api == "LeaderAndIsr" else 0
    assert len(encoded(*build(case), api, version, longest + room)) == len(whole)
    assert len(encoded(*build(case), api, version, longest - 1)) > len(whole)


@pytest.mark.parametrize("version", range(9))
@pytest.mark.parametrize("byte_limit", [700, 2**20])
def test_metadata_body_is_shared_by_all_brokers(version: int, byte_limit: int) -> None:
    cluster, requests = build(random_case(Random(5), max_partitions=300))
    assert len(requests.metadata_brokers) > 1
    shared: dict[int, list[int]] = {}
    for request in encoded(cluster, requests, "UpdateMetadata", version, byte_limit):
        _, partitions = request.chunks
        shared.setdefault(request.broker, []).append(id(partitions))
    assert len(shared) == len(requests.metadata_brokers)
    assert len({tuple(chunks) for chunks in shared.values()}) == 1


def check_groups(case: Case, api: str, version: int, byte_limit: int) -> None:
    """Requests have equal content with any shared memory. Groups use all their memory, within the limit or with one
    section."""
    expected = [(request.broker, body(request)) for request in encoded(*build(case), api, version, byte_limit)]
    for group_bytes, group_sections in ((1, 4096), (500, 4096), (3000, 4096), (2**20, 1), (2**20, 2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sections, "GROUP_BYTES", group_bytes)
            patch.setattr(sections, "GROUP_SECTIONS", group_sections)
            requests = encoded(*build(case), api, version, byte_limit)
        assert [(request.broker, body(request)) for request in requests] == expected
        memory = {id(view.obj): view for view in views(requests)}
        arrays = Counter(dict.fromkeys(memory, 0))
        sharing = {(id(view), id(view.obj)): len(view) for view in views(requests)}
        for (_, key), nbytes in sharing.items():
            arrays[key] += nbytes
        for key, view in memory.items():
            assert arrays[key] == len(memoryview(view.obj))
            count = sum(of == key for _, of in sharing)
            assert count <= group_sections
            assert arrays[key] <= group_bytes or count == 1


def views(requests: list[EncodedRequest]) -> list[memoryview]:
    """Return the chunks that may share memory with other requests."""
    return [chunk for request in requests for chunk in request.chunks if isinstance(chunk, memoryview)]


@pytest.mark.parametrize(("api", "version"), EVERY_VERSION)
def test_each_group_encodes_its_own_rows(api: str, version: int) -> None:
    """Each broker has different flags for a partition, so that tests detect confused groups."""
    partitions = [partition([1, 2, 3]) for _ in range(3)]
    content = {
        "leaderAndIsr": {"1": [[0, 0, 1], [0, 1, 0]], "2": [[0, 0, 0], [0, 1, 1], [0, 2, 0]], "3": [[0, 1, 0]]},
        "stopReplica": {"1": [[0, 0, 11, 1], [0, 1, 12, 0]], "2": [[0, 0, 13, 0], [0, 1, 14, 1]], "3": [[0, 0, 15, 1]]},
    }
    check_groups(
        case_of([broker(broker_id) for broker_id in (1, 2, 3)], [topic("t", *partitions)], **content),
        api,
        version,
        2**20,
    )


@pytest.mark.parametrize("version", range(9))
def test_metadata_limit_includes_live_brokers(version: int) -> None:
    """Broker data takes more of a request than the partitions. With one byte less, both do not fit."""
    brokers, keys = [broker(broker_id) for broker_id in range(1, 40)], [[0, 0], [0, 1]]
    case = case_of(brokers, [topic("t", partition([1]), partition([2]))], updateMetadata=[[1], keys])
    (whole,) = encoded(*build(case), "UpdateMetadata", version)
    for byte_limit, parts in ((whole.nbytes, 1), (whole.nbytes - 1, 2)):
        requests = encoded(*build(case), "UpdateMetadata", version, byte_limit)
        assert len(requests) == parts
        assert all(request.nbytes <= byte_limit for request in requests)


@examples(0.3)
@given(case=CASES, byte_limit=st.sampled_from([1, 300, 2**20]))
def test_requests_share_memory_up_to_a_limit(case: Case, byte_limit: int) -> None:
    for api, version in EVERY_VERSION:
        check_groups(case, api, version, byte_limit)
