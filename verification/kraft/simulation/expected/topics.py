"""What the controller must answer to the creation and deletion of topics, and to new partitions; and their records."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

from kframe.errors import ErrorCode
from kframe.plugin.kraft import ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import RequestRefused, topic_requests
from verification.kraft.simulation.expected.brokers import LEVEL, version_at
from verification.kraft.simulation.expected.placement import Draws, place
from verification.kraft.simulation.expected.responses import difference, error_of
from verification.kraft.simulation.image import ELR_FEATURE, TOPIC, Image
from verification.kraft.simulation.requests import Decided

#: The replicas of new partitions in their order, or why there are none.
_Replicas: TypeAlias = list[tuple[int, ...]] | ErrorCode
#: Versions of the record of a partition by the level from which they are written.
_PARTITION_VERSIONS: Final = {7: 0, 17: 1, 23: 2}
#: Most partitions that a request may create.
PARTITIONS_MAX: Final = 10_000
_DEFAULT_PARTITIONS: Final = 1
_DEFAULT_FACTOR: Final = 3
_NAME_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
_NAME_LENGTH: Final = 249
_METADATA_TOPIC: Final = "__cluster_metadata"


def compare_creations(
    topics: Sequence[topic_requests.CreatableTopic],
    validate_only: bool,
    is_limited: bool,
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to CreateTopics, and its records. Refused names come last. ``is_limited``: the quota allows only
    the first valid topic."""
    times = Counter(topic.name for topic in topics)
    valid = [topic for topic in topics if times[topic.name] == 1 and topic.name != _METADATA_TOPIC]
    if requested_partitions(valid) > PARTITIONS_MAX or isinstance(decided, RequestRefused):
        return difference(_limit_error(requested_partitions(valid)), error_of(decided))
    draws = Draws(image.soft.draws)
    results = {result.topic: result for result in decided.response}
    expected: list[tuple[str, ErrorCode, int, int]] = []
    content: list[RecordAndVersion] = []
    for topic in valid:
        replicas = _created(topic, image, draws)
        if is_limited and content and not isinstance(replicas, ErrorCode):
            replicas = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if isinstance(replicas, ErrorCode):
            expected.append((topic.name, replicas, -1, -1))
            continue
        expected.append((topic.name, ErrorCode.NONE, len(replicas), len(replicas[0])))
        topic_id = results[topic.name].topic_id if topic.name in results else None
        if topic_id is None or topic_id.int <= 1 or topic_id in image.names:
            return f"the controller creates {topic.name} with the id {topic_id}"
        content.append(RecordAndVersion(records.TopicRecord(name=topic.name, topic_id=topic_id), 0))
        content += _settings(topic, image)
        content += _partitions(image, topic_id, 0, replicas)
    expected += [(name, ErrorCode.INVALID_REQUEST, -1, -1) for name, count in times.items() if count > 1]
    if times[_METADATA_TOPIC] == 1:
        expected.append((_METADATA_TOPIC, ErrorCode.INVALID_REQUEST, -1, -1))
    answered = [(each.topic, each.error, each.partitions, each.replication_factor) for each in decided.response]
    problem = difference(expected, answered) or _difference_of_records([] if validate_only else content, decided)
    if problem is None and not draws.is_complete:
        problem = f"the controller drew {image.soft.draws} to create {topics}"
    return problem


def requested_partitions(topics: Sequence[topic_requests.CreatableTopic]) -> int:
    """The partitions of all topics of a request, whether they are valid or not."""
    by_number = [topic.partitions for topic in topics if not topic.assignments]
    assigned = sum(len(topic.assignments) for topic in topics)
    return assigned + sum(_DEFAULT_PARTITIONS if count == -1 else count for count in by_number if count >= -1)


def _limit_error(partitions: int) -> ErrorCode:
    return ErrorCode.POLICY_VIOLATION if partitions > PARTITIONS_MAX else ErrorCode.NONE


def _created(topic: topic_requests.CreatableTopic, image: Image, draws: Draws) -> _Replicas:
    """The replicas of a topic by partition."""
    if topic.name in image.topics:
        return ErrorCode.TOPIC_ALREADY_EXISTS
    is_name = 0 < len(topic.name) <= _NAME_LENGTH and set(topic.name) <= _NAME_CHARACTERS
    metrics = {name.replace(".", "_") for name in image.topics}
    if not is_name or topic.name in (".", "..") or topic.name.replace(".", "_") in metrics:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if None in topic.configs.values():
        return ErrorCode.INVALID_CONFIG
    if topic.assignments:
        return _assigned(topic, image)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        return ErrorCode.INVALID_REPLICATION_FACTOR
    if topic.partitions < -1 or topic.partitions == 0:
        return ErrorCode.INVALID_PARTITIONS
    count = _DEFAULT_PARTITIONS if topic.partitions == -1 else topic.partitions
    factor = _DEFAULT_FACTOR if topic.replication_factor == -1 else topic.replication_factor
    return _placed(image, draws, count, factor)


def _assigned(topic: topic_requests.CreatableTopic, image: Image) -> _Replicas:
    if (topic.partitions, topic.replication_factor) != (-1, -1):
        return ErrorCode.INVALID_REQUEST
    replicas = dict(topic.assignments)
    is_valid = sorted(replicas) == list(range(len(topic.assignments)))
    factor = len(topic.assignments[0][1])
    if not is_valid or not all(_is_assignment(image, each, factor) for each in replicas.values()):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return [replicas[number] for number in sorted(replicas)]


def _is_assignment(image: Image, replicas: Sequence[int], factor: int) -> bool:
    """Whether replicas may be assigned by hand: one is active, and none is on a broker with cordoned directories."""
    are_distinct = len(set(replicas)) == len(replicas) == factor
    return (
        are_distinct
        and all(map(image.may_assign, replicas))
        and any(image.brokers[each].is_active for each in replicas)
    )


def _placed(image: Image, draws: Draws, count: int, factor: int) -> _Replicas:
    """Placed by numbers. A partition whose brokers are all fenced or stop is refused."""
    replicas = place(image, draws, count, factor)
    if replicas is None:
        return ErrorCode.INVALID_REPLICATION_FACTOR
    has_active = all(any(image.brokers[each].is_active for each in partition) for partition in replicas)
    return replicas if has_active else ErrorCode.INVALID_REPLICATION_FACTOR


def _settings(topic: topic_requests.CreatableTopic, image: Image) -> list[RecordAndVersion]:
    content = [
        RecordAndVersion(records.ConfigRecord(resource_type=TOPIC, resource_name=topic.name, name=name, value=value), 0)
        for name, value in topic.configs.items()
    ]
    if "min.insync.replicas" in topic.configs and image.features.get(ELR_FEATURE, 0):
        content.append(RecordAndVersion(records.ClearElrRecord(topic_name=topic.name), 0))
    return content


def _partitions(image: Image, topic_id: UUID, first: int, replicas: Sequence[Sequence[int]]) -> list[RecordAndVersion]:
    """The records of new partitions: active replicas are in sync, and the first of them leads."""
    level, content = image.features[LEVEL], []
    for number, members in enumerate(replicas):
        isr = tuple(member for member in members if image.brokers[member].is_active)
        record = records.PartitionRecord(
            partition_id=first + number,
            topic_id=topic_id,
            replicas=tuple(members),
            isr=isr,
            removing_replicas=(),
            adding_replicas=(),
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(image.default_directory(member) for member in members) if level >= 17 else (),
        )
        content.append(RecordAndVersion(record, version_at(level, _PARTITION_VERSIONS)))
    return content


def compare_new_partitions(
    requests: Sequence[topic_requests.CreatePartitionsTopic],
    validate_only: bool,
    is_limited: bool,
    image: Image,
    end: int,
    decided: Decided,
) -> str | None:
    """The response to CreatePartitions, and its records. ``is_limited``: the quota allows only the first topic, by
    its numbers; whether its assignments are valid is checked later."""
    times = Counter(request.topic for request in requests)
    valid = [request for request in requests if times[request.topic] == 1]
    total = sum(max(_added_partitions(request, image), 0) for request in valid if request.topic in image.topics)
    if total > PARTITIONS_MAX or isinstance(decided, RequestRefused):
        return difference(_limit_error(total), error_of(decided))
    draws = Draws(image.soft.draws)
    expected: list[tuple[str, ErrorCode]] = []
    content: list[RecordAndVersion] = []
    is_exceeded = False
    for request in valid:
        replicas = _number_error(request, image)
        if replicas is ErrorCode.NONE:
            replicas = ErrorCode.THROTTLING_QUOTA_EXCEEDED if is_exceeded else _added(request, image, draws)
            is_exceeded = is_limited
        expected.append((request.topic, replicas if isinstance(replicas, ErrorCode) else ErrorCode.NONE))
        if not isinstance(replicas, ErrorCode):
            topic_id = image.topics[request.topic]
            content += _partitions(image, topic_id, request.count - len(replicas), replicas)
    expected += [(name, ErrorCode.INVALID_REQUEST) for name, count in times.items() if count > 1]
    answered = [(each.topic, each.error) for each in decided.response]
    problem = difference(expected, answered) or _difference_of_records([] if validate_only else content, decided)
    if problem is None and not draws.is_complete:
        problem = f"the controller drew {image.soft.draws} to add partitions by {requests}"
    return problem


def _added_partitions(request: topic_requests.CreatePartitionsTopic, image: Image) -> int:
    return request.count - len([*image.partitions_of(image.topics[request.topic])])


def _number_error(request: topic_requests.CreatePartitionsTopic, image: Image) -> _Replicas:
    """What is wrong with the numbers of a request."""
    if request.topic not in image.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    added = _added_partitions(request, image)
    if added <= 0:
        return ErrorCode.INVALID_PARTITIONS
    has_others = request.assignments is not None and len(request.assignments) != added
    return ErrorCode.INVALID_REPLICA_ASSIGNMENT if has_others else ErrorCode.NONE


def _added(request: topic_requests.CreatePartitionsTopic, image: Image, draws: Draws) -> _Replicas:
    """The replicas of new partitions, of which there are as many as there should be."""
    topic_id = image.topics[request.topic]
    numbers = [number for _, number in image.partitions_of(topic_id)]
    was_changed = any(image.partitions[topic_id, number].partition_epoch for number in numbers)
    factor = len(image.partitions[topic_id, _first_listed(numbers, was_changed=was_changed)].replicas)
    if request.assignments is None:
        return _placed(image, draws, request.count - len(numbers), factor)
    if not all(_is_assignment(image, replicas, factor) for replicas in request.assignments):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return [*request.assignments]


def _first_listed(numbers: Sequence[int], *, was_changed: bool) -> int:
    """The partition that Kafka's hash table lists first: of the first slot in use, the one that came last. A change
    after the last insertion may have enlarged the table."""
    bits = 1
    while 3 * (len(numbers) + was_changed) > 4 * 2**bits:
        bits += 1
    slots = {number: (number * 0x9E3779B97F4A7C15 % 2**64) // 2 ** (64 - bits) for number in numbers}
    return max(number for number in numbers if slots[number] == min(slots.values()))


def compare_deletions(
    names: Sequence[str], topic_ids: Sequence[UUID], image: Image, end: int, decided: Decided
) -> str | None:
    """The response to DeleteTopics by names and ids, in any order, and its records."""
    if isinstance(decided, RequestRefused):
        return f"a deletion is refused: {decided}"
    expected: Counter[tuple[str, UUID | None, ErrorCode]] = Counter()
    deleted: list[UUID] = []
    for topic_id, times in Counter(topic_ids).items():
        name = image.names.get(topic_id, "")
        if times > 1:
            expected["", topic_id, ErrorCode.INVALID_REQUEST] += 1
        elif topic_id not in image.topics.values():
            expected["", topic_id, ErrorCode.UNKNOWN_TOPIC_ID] += 1
        elif name not in names or names.count(name) > 1:
            deleted.append(topic_id)
    for name, times in Counter(names).items():
        if times > 1:
            expected[name, None, ErrorCode.INVALID_REQUEST] += 1
        elif name not in image.topics:
            expected[name, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] += 1
        elif image.topics[name] in topic_ids:
            expected[name, image.topics[name], ErrorCode.INVALID_REQUEST] += 1
        else:
            deleted.append(image.topics[name])
    expected.update((image.names[topic_id], topic_id, ErrorCode.NONE) for topic_id in deleted)
    answered = Counter((each.topic, each.topic_id, each.error) for each in decided.response)
    content = [RecordAndVersion(records.RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in deleted]
    return difference(expected, answered) or _difference_of_records(content, decided)


def _difference_of_records(expected: Sequence[RecordAndVersion], decided: ControllerResult[Any]) -> str | None:
    """None if a request has these records, all or none."""
    if not decided.atomic:
        return "the records of a request for topics are not atomic"
    return difference(expected, decided.records)
