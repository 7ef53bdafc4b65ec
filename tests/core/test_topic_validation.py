"""Errors of CreateTopics and CreatePartitions (``wire.md`` sections 9 and 11): the first failed check decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kframe.core.topics.topic_validation import NewTopicChecks
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.events import CreatePartitionsRequested, CreateTopicsRequested
from kframe.ports.store_requests import ReadTopicNames, ReadTopics
from kframe.testing.clusters import PartitionSpec, healthy, registration
from tests.core.driver import Driver, quiet

NONE = ErrorCode.NONE
INVALID_REQUEST = ErrorCode.INVALID_REQUEST
ALREADY = ErrorCode.TOPIC_ALREADY_EXISTS
INVALID_CONFIG = ErrorCode.INVALID_CONFIG
PARTITIONS = ErrorCode.INVALID_PARTITIONS
FACTOR = ErrorCode.INVALID_REPLICATION_FACTOR
NAME = ErrorCode.INVALID_TOPIC_EXCEPTION
ASSIGNMENT = ErrorCode.INVALID_REPLICA_ASSIGNMENT
TOO_MANY = ErrorCode.POLICY_VIOLATION


def manual(*lists: tuple[int, ...]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple(enumerate(lists))


def topic(name: str = "new", **fields: Any) -> NewTopic:
    return NewTopic(name, **fields)


#: (check of wire 9, topic, error code). Brokers 1 to 3 are registered; "used" and "some.thing" exist.
CREATION: list[tuple[str, NewTopic, ErrorCode]] = [
    ("2 metadata topic", topic("__cluster_metadata"), INVALID_REQUEST),
    ("5 exists", topic("used"), ALREADY),
    ("5 before 6", topic("used", config={"retention.ms": None}), ALREADY),
    ("6 null value", topic(config={"retention.ms": None}), INVALID_CONFIG),
    ("6 before 7", topic(config={"retention.ms": None}, partitions=1, assignments=manual((1,))), INVALID_CONFIG),
    ("7 assignments and partitions", topic(partitions=1, assignments=manual((1,))), INVALID_REQUEST),
    ("7 assignments and factor", topic(replication_factor=1, assignments=manual((1,))), INVALID_REQUEST),
    ("7 before 9", topic("a/b", replication_factor=1, assignments=manual((1,))), INVALID_REQUEST),
    ("8 no partitions", topic(partitions=0), PARTITIONS),
    ("8 fewer than none", topic(partitions=-2), PARTITIONS),
    ("8 no replicas", topic(replication_factor=0), FACTOR),
    ("8 fewer replicas", topic(replication_factor=-2), FACTOR),
    ("8 more replicas than brokers", topic(replication_factor=4), FACTOR),
    ("8 partitions before factor", topic(partitions=0, replication_factor=9), PARTITIONS),
    ("8 before 9", topic("a/b", partitions=0), PARTITIONS),
    ("no record holds as many partitions", topic(partitions=2**31 - 1, replication_factor=3), TOO_MANY),
    ("just too many for a record", topic(partitions=349_526, replication_factor=3), TOO_MANY),
    ("factor before record", topic(partitions=2**31 - 1, replication_factor=4), FACTOR),
    ("9 empty name", topic(""), NAME),
    ("9 dot", topic("."), NAME),
    ("9 two dots", topic(".."), NAME),
    ("9 too long", topic("n" * 250), NAME),
    ("9 longest", topic("n" * 249), NONE),
    ("9 slash", topic("a/b"), NAME),
    ("9 umlaut", topic("käfig"), NAME),
    ("9 newline", topic("new\n"), NAME),
    ("9 all that is allowed", topic("aZ0._-"), NONE),
    ("11 collides", topic("some_thing"), NAME),
    ("11 before 12", topic("some_thing", assignments=manual((1, 1))), NAME),
    ("12 unequal counts", topic(assignments=manual((1, 2), (3,))), ASSIGNMENT),
    ("12 replica twice", topic(assignments=manual((1, 1))), ASSIGNMENT),
    ("12 no replicas", topic(assignments=manual(())), ASSIGNMENT),
    ("12 not from 0", topic(assignments=((1, (1,)), (2, (1,)))), ASSIGNMENT),
    ("12 gap", topic(assignments=((0, (1,)), (2, (1,)))), ASSIGNMENT),
    ("12 partition twice", topic(assignments=((0, (1,)), (0, (2,)))), ASSIGNMENT),
    ("12 dead and unknown brokers", topic(assignments=manual((1, 9), (8, 2))), NONE),
    ("12 any order", topic(assignments=((1, (2,)), (0, (1,)))), NONE),
    ("12 before 13", topic(assignments=manual((1, 1)), config={"no.such": "1"}), ASSIGNMENT),
    ("13 unknown key", topic(config={"no.such": "1"}), INVALID_CONFIG),
    ("13 bad value", topic(config={"min.insync.replicas": "0"}), INVALID_CONFIG),
    ("13 bad boolean", topic(config={"unclean.leader.election.enable": "yes"}), INVALID_CONFIG),
    ("13 good values", topic(config={"retention.ms": "-1", "cleanup.policy": "compact,delete"}), NONE),
    ("defaults", topic(), NONE),
    ("all replicas there can be", topic(partitions=7, replication_factor=3), NONE),
]


def make_driver(**config: object) -> Driver:
    return quiet({"used": [healthy(1)], "some.thing": [healthy(2)]}, (1, 2, 3), **config)


def create(driver: Driver, *topics: NewTopic, validate_only: bool = False) -> Mapping[str, ErrorCode]:
    token = len(driver.replies) + 1
    codes: Mapping[str, ErrorCode] = driver.ask(CreateTopicsRequested(topics, 1_000, validate_only, token=token)).codes
    return codes


@pytest.mark.parametrize("validate_only", [True, False], ids=["validated", "created"])
@pytest.mark.parametrize("new, code", [row[1:] for row in CREATION], ids=[row[0] for row in CREATION])
def test_create_topics_returns_first_failed_check(new: NewTopic, code: ErrorCode, validate_only: bool) -> None:
    """wire 9: per topic, the first failed check decides. ValidateOnly writes nothing."""
    driver = make_driver()
    if (
        not validate_only
        and new.assignments is not None
        and any(9 in replicas or 8 in replicas for _, replicas in new.assignments)
    ):
        driver.register_brokers(8, 9)
    names = set(driver.cluster.topics.names)
    assert create(driver, new, validate_only=validate_only) == {new.name: code}
    created = {new.name} if code is NONE and not validate_only else set()
    assert set(driver.cluster.topics.names) == names | created
    assert driver.store.perform(ReadTopicNames()) == names | created
    if not created:
        assert driver.batches == []


def test_request_is_accepted_whole_only_if_no_topic_has_an_error() -> None:
    """Each topic of the table beside a valid one, and topics that are valid only without each other."""
    driver = make_driver()
    for new in [row[1] for row in CREATION]:
        checks, pair = NewTopicChecks(driver.context), (topic("valid"), new)
        is_plain = not new.config and new.assignments is None
        assert checks.accepts_all(pair) is (is_plain and checks.error_of(new) is NONE)
    checks = NewTopicChecks(driver.context)
    assert checks.accepts_all((topic("a.b"), topic("a-b")))
    assert not checks.accepts_all((topic("a.b"), topic("a_b")))
    assert not checks.accepts_all((topic("a"), topic("a")))
    assert not checks.accepts_all(())


def test_topics_of_request_are_independent() -> None:
    """wire 9: valid topics of a request are created in spite of invalid ones."""
    driver = make_driver()
    codes = create(driver, topic("good"), topic("used"), topic("b/d"), topic("fine"))
    assert codes == {"good": NONE, "used": ALREADY, "b/d": NAME, "fine": NONE}
    assert {"good", "fine"} <= driver.store.perform(ReadTopicNames())


def test_repeated_name_is_refused() -> None:
    """wire 9: check 3, the request contains a name twice."""
    driver = make_driver()
    assert create(driver, topic("twice"), topic("twice"), topic("once")) == {"twice": INVALID_REQUEST, "once": NONE}
    assert "twice" not in driver.store.perform(ReadTopicNames())


def test_topics_of_the_same_request_collide() -> None:
    """wire 9: check 11, which Kafka runs for each topic as it creates the topic."""
    driver = make_driver()
    assert create(driver, topic("one.two"), topic("one_two")) == {"one.two": NONE, "one_two": NAME}


def test_topic_marked_for_deletion_already_exists() -> None:
    """wire 9: checks 5 and 10, marked for deletion."""
    driver = make_driver()
    driver.ensemble.unregister_brokers([1])
    driver.follow()
    driver.ensemble.mark_for_deletion(["used"])
    driver.follow()
    assert driver.cluster.topics.deleting[driver.cluster.topics.find("used")] == 1
    assert create(driver, topic("used")) == {"used": ALREADY}


def test_topic_in_storage_already_exists() -> None:
    """wire 9: check 15, NODEEXISTS."""
    driver = make_driver()
    driver.create_topics({"new": [(1,)]})
    assert create(driver, topic("new")) == {"new": ALREADY}


@pytest.mark.parametrize(
    "key, new, expected",
    [
        ("num_partitions", topic(replication_factor=2), (3, 2)),
        ("default_replication_factor", topic(partitions=2), (2, 3)),
    ],
)
def test_configured_defaults_apply(key: str, new: NewTopic, expected: tuple[int, int]) -> None:
    """controller 5: num.partitions and default.replication.factor."""
    driver = make_driver(**{key: 3})
    assert create(driver, new) == {"new": NONE}
    views = [view for view in driver.cluster if view.topic == "new"]
    assert (len(views), len(views[0].replicas)) == expected


def test_shutting_down_brokers_count_for_automatic_assignment() -> None:
    """wire 9: the metadata cache has every registered broker, shutting down or not."""
    driver = make_driver()
    driver.cluster.brokers.shutting_down[driver.cluster.brokers.index_of([3])] = 1
    assert create(driver, topic(replication_factor=3)) == {"new": NONE}
    assert create(driver, topic("more", replication_factor=4)) == {"more": FACTOR}


def test_partial_racks_fail_automatic_assignment() -> None:
    """wire 9: rack-aware if any broker has a rack. Then all brokers must have a rack (else error -1)."""
    driver = quiet({}, (registration(1, "a"), registration(2)))
    assert create(driver, topic(partitions=1, replication_factor=1)) == {"new": ErrorCode.UNKNOWN_SERVER_ERROR}


# -- CreatePartitions

MOVING = PartitionSpec((3, 1), 1, (1,), adding_replicas=(3,), removing_replicas=(1,))

#: (check of wire 11, growth, error code). Topic "t" has 2 partitions with 2 replicas; "moving" is under reassignment.
GROWTH: list[tuple[str, NewPartitions, ErrorCode]] = [
    ("unknown", NewPartitions("nowhere", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("being deleted", NewPartitions("leaving", 3), NAME),
    ("being reassigned", NewPartitions("moving", 3), ErrorCode.REASSIGNMENT_IN_PROGRESS),
    ("reassigned before count", NewPartitions("moving", 1), ErrorCode.REASSIGNMENT_IN_PROGRESS),
    ("fewer", NewPartitions("t", 1), PARTITIONS),
    ("as many", NewPartitions("t", 2), PARTITIONS),
    ("none", NewPartitions("t", 0), PARTITIONS),
    ("negative", NewPartitions("t", -1), PARTITIONS),
    ("too few lists", NewPartitions("t", 4, ((1, 2),)), ASSIGNMENT),
    ("too many lists", NewPartitions("t", 3, ((1, 2), (2, 1))), ASSIGNMENT),
    ("no lists", NewPartitions("t", 3, ()), ASSIGNMENT),
    ("empty list", NewPartitions("t", 3, ((),)), ASSIGNMENT),
    ("replica twice", NewPartitions("t", 3, ((1, 1),)), ASSIGNMENT),
    ("unknown broker", NewPartitions("t", 3, ((1, 9),)), ASSIGNMENT),
    ("another factor", NewPartitions("t", 3, ((1, 2, 3),)), ASSIGNMENT),
    ("one replica less", NewPartitions("t", 4, ((1, 2), (1,))), ASSIGNMENT),
    ("count before lists", NewPartitions("t", 2, ((9,),)), PARTITIONS),
    ("manual", NewPartitions("t", 4, ((3, 1), (1, 2))), NONE),
    ("automatic", NewPartitions("t", 5), NONE),
    ("no record holds as many partitions", NewPartitions("t", 2**31 - 1), TOO_MANY),
    ("just too many for a record", NewPartitions("t", 419_431), TOO_MANY),
]


def growing() -> Driver:
    driver = quiet({"t": [healthy(2, 1), healthy(1, 2)], "moving": [MOVING], "leaving": [healthy(1)]}, (1, 2, 3))
    driver.cluster.topics.deleting[driver.cluster.topics.find("leaving")] = 1
    return driver


@pytest.mark.parametrize("validate_only", [True, False], ids=["validated", "grown"])
@pytest.mark.parametrize("growth, code", [row[1:] for row in GROWTH], ids=[row[0] for row in GROWTH])
def test_create_partitions_returns_first_failed_check(
    growth: NewPartitions, code: ErrorCode, validate_only: bool
) -> None:
    """wire 11: per topic, the first failed check decides. ValidateOnly writes nothing."""
    driver = growing()
    before = driver.store.perform(ReadTopics(("t", "moving"))).partition_counts.tolist()
    request = CreatePartitionsRequested((growth,), 1_000, validate_only, token=1)
    assert driver.ask(request).codes == {growth.name: code}
    after = driver.store.perform(ReadTopics(("t", "moving"))).partition_counts.tolist()
    if code is NONE and not validate_only:
        assert after == [growth.count, before[1]]
        numbers = range(2, growth.count)
        if growth.assignments:
            assert tuple(driver.known(f"t-{number}").replicas for number in numbers) == growth.assignments
        assert all(driver.stored(f"t-{number}").leader in (1, 2, 3) for number in numbers)
    else:
        assert after == before
        assert driver.batches == []


@pytest.mark.parametrize(
    "first, expected",
    [
        ((2, 1), [(1, 3), (2, 3)]),
        ((1, 2), [(3, 1), (1, 3)]),
        ((3, 1), [(2, 3), (3, 2)]),
        ((9, 1), [(3, 1), (1, 3)]),
    ],
)
def test_automatic_growth_starts_at_first_replica_of_partition_0(
    first: tuple[int, ...], expected: list[tuple[int, ...]]
) -> None:
    """wire 11: start = shift = index of the first broker id >= replicas[0] of partition 0; numbering continues."""
    spec = PartitionSpec(first, first[1], first[1:])
    driver = quiet({"t": [spec, spec]}, (1, 2, 3))
    driver.ask(CreatePartitionsRequested((NewPartitions("t", 4),), 1_000, token=1))
    assert [driver.known(f"t-{number}").replicas for number in (2, 3)] == expected


def test_repeated_growth_is_refused() -> None:
    """wire 11: duplicate topic 42."""
    driver = growing()
    listed = (NewPartitions("t", 3), NewPartitions("t", 4))
    assert driver.ask(CreatePartitionsRequested(listed, 1_000, token=1)).codes == {"t": INVALID_REQUEST}


def test_growth_of_a_topic_without_partitions() -> None:
    """Kafka 3.9 ``ZkAdminManager.createPartitions``: a topic without any assignment does not exist."""
    driver = quiet({"hollow": []}, (1, 2, 3))
    request = CreatePartitionsRequested((NewPartitions("hollow", 1),), 1_000, token=1)
    assert driver.ask(request).codes == {"hollow": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
