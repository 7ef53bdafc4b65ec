"""Nodes that are not brokers have no replicas (``wire.md`` section 17). Node 1000 is this controller, 1001 another
one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kframe.embedded import Api
from kframe.errors import ErrorCode
from kframe.model.admin import NewPartitions, NewTopic
from kframe.model.arrays import Ragged
from kframe.model.events import CreatePartitionsRequested, CreateTopicsRequested, Reelect
from kframe.model.tables import TopicTable
from kframe.model.topics import ZERO_TOPIC_ID
from kframe.ports.store_requests import ReadTopics, WriteAssignments, WriteStates
from kframe.testing.clusters import PartitionSpec, healthy
from tests.core.driver import Driver, assigned, elected, quiet, refusals, standby, state_of
from tests.core.reassignments import (
    INVALID,
    NONE,
    NOT_REASSIGNING,
    TargetLists,
    catch_up,
    store_reassignments,
    stored_targets,
    submit,
)
from tests.core.test_topics import create, grow

NEVER: dict[str, Any] = {"kframe_never_replicas": "1000, 1001"}
BALLAST = {"a": [healthy(7)], "b": [healthy(7)], "c": [healthy(7)]}
Lists = list[tuple[int, ...]]


def stored_lists(driver: Driver, topic: str, count: int) -> Lists:
    return [driver.stored(f"{topic}-{number}").replicas for number in range(count)]


@pytest.mark.parametrize(
    ("brokers", "written", "saved"),
    [
        pytest.param((1, 2, 3), [(1, 2), (2, 3)], [(1, 2), (2, 3)], id="nothing to mend"),
        pytest.param((1, 2, 3), [(1, 1000)], [(1, 2)], id="replaced by an unassigned broker"),
        pytest.param((1, 2, 3), [(1000, 2)], [(1, 2)], id="also the preferred one"),
        pytest.param(
            (1, 2, 3), [(1000,), (1000,), (1000,), (1000,)], [(1,), (2,), (3,), (1,)], id="brokers take turns"
        ),
        pytest.param((1, 2, 3), [(1000, 1), (2, 1000)], [(2, 1), (2, 3)], id="and are passed over where they are"),
        pytest.param((1, 2, 3), [(1000, 3, 1001)], [(1, 3, 2)], id="two strangers in one list"),
        pytest.param((1, 2), [(1, 2, 1000)], [(1, 2)], id="no broker available: one replica fewer"),
        pytest.param((1, 2), [(1000, 7)], [(2, 7)], id="a broker that is down is a broker"),
        pytest.param((1, 2, 1000), [(1, 1000)], [(1, 1000)], id="registered under such an id it is a broker"),
        pytest.param((), [(1000,), (7, 1000)], [(1000,), (7,)], id="no list becomes empty"),
    ],
)
def test_new_partitions_are_repaired_before_they_come_online(
    brokers: tuple[int, ...], written: Lists, saved: Lists
) -> None:
    """wire 17. Three topics precede the new topic, so that its replacements start with the first of three brokers."""
    driver = quiet(BALLAST, brokers, **NEVER)
    create(driver, {"new": written})
    assert stored_lists(driver, "new", len(written)) == saved
    for number, replicas in enumerate(saved):
        led = tuple(broker for broker in replicas if broker in brokers)
        assert driver.known(f"new-{number}").replicas == replicas
        assert driver.stored(f"new-{number}").isr == led
        assert set(driver.recipients(Api.LEADER_AND_ISR, f"new-{number}")) == set(led)


def test_repair_keeps_topic_id_and_is_stored_before_states() -> None:
    """wire 17: topic_id survives. The assignment is written, then the state."""
    driver = quiet(BALLAST, (1, 2), **NEVER)
    create(driver, {"new": [(1000, 1)]})
    (written,) = [effect.table for effect in driver.effects if isinstance(effect, WriteAssignments)]
    topic = driver.cluster.topics.find("new")
    assert topic is not None
    assert written.topic_ids == (driver.cluster.topics.ids[topic].tobytes(),) != (ZERO_TOPIC_ID,)
    order = [type(effect) for effect in driver.effects if isinstance(effect, WriteAssignments | WriteStates)]
    assert order == [WriteAssignments, WriteStates]


def test_valid_assignment_is_not_written() -> None:
    """wire 17: a valid assignment is not written again."""
    driver = quiet(BALLAST, (1, 2), **NEVER)
    create(driver, {"new": [(1, 2), (2, 1)]})
    assert len(driver.performed(WriteAssignments)) == 0


def test_partitions_added_by_a_broker_are_repaired() -> None:
    """wire 17, PartitionModifications: known partitions keep their replicas. This also holds for other topics."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2, 3), **NEVER)
    grow(driver, (1000, 2), (3, 1))
    assert stored_lists(driver, "t", 3) == [(1, 2), (1, 2), (3, 1)]
    assert state_of(driver.stored("t-1")) == (1, (1, 2), 0)


def test_failover_repairs_partitions_without_state() -> None:
    """wire 17: before any request to brokers."""
    specs = {"t": [healthy(1, 2), PartitionSpec((1000, 2))], "gone": [PartitionSpec((1000, 1))]}
    driver = standby(specs, (1, 2), **NEVER)
    driver.ensemble.mark_for_deletion(["gone"])
    driver.handle(Reelect())
    driver.follow()
    assert stored_lists(driver, "t", 2) == [(1, 2), (1, 2)]
    assert state_of(driver.stored("t-1")) == (1, (1, 2), 0)
    assert len(driver.performed(WriteAssignments)) == 1
    assert not any(1000 in entry["isr"] for entry in driver.entries(Api.LEADER_AND_ISR, "t-1").values())


def test_topic_grows_during_the_repair() -> None:
    """wire 17: the write is compare-and-set. A partition that is added in between is retained. It is fixed as well."""
    driver = quiet({"t": [healthy(1, 2)]}, (1, 2, 3), **NEVER)
    driver.before(WriteAssignments, lambda: _add(driver, (3, 1000)))
    grow(driver, (1000, 2))
    assert stored_lists(driver, "t", 3) == [(1, 2), (1, 2), (3, 1)]
    assert [state_of(driver.stored(f"t-{number}")) for number in (1, 2)] == [(1, (1, 2), 0), (3, (3, 1), 0)]


def _add(driver: Driver, replicas: tuple[int, ...]) -> None:
    """Add one partition to the stored assignment of t, as a broker does."""
    table = driver.store.perform(ReadTopics(("t",)))
    added = TopicTable.starting(
        ("t",), table.partition_counts + np.int32(1), Ragged.chain([table.replicas, Ragged.of([replicas])])
    )
    driver.write_topics(added)


# -- partitions that have a state


@pytest.mark.parametrize(
    ("brokers", "before", "target"),
    [
        pytest.param((1, 2, 3), (1, 1000), (1, 2), id="another broker catches up"),
        pytest.param((1, 2, 3), (1000, 1), (2, 1), id="at another position"),
        pytest.param((1, 7), (1, 7), None, id="dead broker is not replaced"),
        pytest.param((1,), (1, 1000), None, id="nothing is dropped: it waits for a broker"),
        pytest.param((1, 2, 1000), (1, 1000), None, id="registered it is a broker"),
    ],
)
def test_failover_reassigns_partitions_with_state(
    brokers: tuple[int, ...], before: tuple[int, ...], target: tuple[int, ...] | None
) -> None:
    """Another controller has elected a leader. The controller reassigns the partition as an operator would."""
    spec = PartitionSpec(before, 1, (1,), leader_epoch=5)
    driver = elected({**BALLAST, "t": [spec]}, brokers, **NEVER)
    driver.follow()
    if target is None:
        assert assigned(driver.stored("t-0")) == (before, (), ())
        return
    replicas, adding, removing = assigned(driver.stored("t-0"))
    assert (replicas[: len(target)], adding, removing) == (target, (2,), (1000,))
    catch_up(driver, (1, 2))
    assert assigned(driver.stored("t-0")) == (target, (), ())
    assert 1000 not in driver.stored("t-0").isr


def test_waiting_reassignment_resumes_when_a_broker_registers() -> None:
    """The controller tries again whenever a broker registers."""
    driver = elected({"t": [PartitionSpec((1, 1000), 1, (1,))]}, (1,), **NEVER)
    driver.start_brokers(2)
    assert assigned(driver.stored("t-0")) == ((1, 2, 1000), (2,), (1000,))


def test_reassignment_to_an_unknown_broker_gets_another_target() -> None:
    """A reassignment of another controller would never complete."""
    spec = PartitionSpec((1, 1000), 1, (1,), adding_replicas=(1000,))
    driver = elected({**BALLAST, "t": [spec]}, (1, 2), **NEVER)
    assert assigned(driver.stored("t-0")) == ((1, 2), (2,), ())


def test_protocol_08_logs_unknown_brokers(caplog: pytest.LogCaptureFixture) -> None:
    """Kafka 0.8 has no reassignment except by an operator."""
    driver = elected({"t": [PartitionSpec((1, 1000), 1, (1,))]}, (1, 2), **NEVER, reassignment_protocol="0.8")
    assert assigned(driver.stored("t-0")) == ((1, 1000), (), ())
    assert any("t-0: is assigned to a node that is no broker" in line for line in refusals(caplog))


# -- requests


@pytest.mark.parametrize("protocol", ["3.9", "0.8"])
@pytest.mark.parametrize(
    ("spec", "target", "code"),
    [
        pytest.param(NOT_REASSIGNING, (1, 2, 1000), INVALID, id="adds an unknown broker"),
        pytest.param(NOT_REASSIGNING, (1, 2, 1001), INVALID, id="adds an unknown broker without index"),
        pytest.param(NOT_REASSIGNING, (1, 2, 4), NONE, id="adds a broker"),
        pytest.param(PartitionSpec((1, 1000), 1, (1,)), (2, 1000), INVALID, id="keeps an unknown broker"),
        pytest.param(PartitionSpec((1, 1000), 1, (1,)), (1, 2), NONE, id="removes an unknown broker"),
    ],
)
def test_reassignments_to_unknown_brokers_are_refused(
    protocol: str, spec: PartitionSpec, target: tuple[int, ...], code: ErrorCode
) -> None:
    """wire 17: INVALID_REPLICA_ASSIGNMENT for a request. A stored entry is removed."""
    requested = quiet({"t": [spec]}, **NEVER, reassignment_protocol=protocol)
    assert submit(requested, [(("t", 0), target)]) == [code]
    driver = quiet({"t": [spec], "other": [NOT_REASSIGNING]}, **NEVER, reassignment_protocol=protocol)
    targets: TargetLists = [(("t", 0), target), (("other", 0), (1, 2, 6))]
    store_reassignments(driver, targets)
    assert stored_targets(driver) == {f"{name}-0": ids for (name, _), ids in targets if name == "other" or code is NONE}
    assert (assigned(driver.stored("t-0")) == (spec.replicas, (), ())) is (code is INVALID)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("new", assignments=((0, (1, 1000)),)), INVALID),
        (NewTopic("new", assignments=((0, (1, 1001)),)), INVALID),
        (NewTopic("new", assignments=((0, (1, 7)),)), NONE),
        (NewTopic("new", 6, 2), NONE),
        (NewTopic("new", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
    ],
)
def test_created_topics_exclude_unknown_brokers(topic: NewTopic, code: ErrorCode) -> None:
    """wire 17: CreateTopics assigns brokers only."""
    driver = quiet({"t": [PartitionSpec((1, 1000), 1, (1,))]}, (1, 2), **NEVER)
    response = driver.ask(CreateTopicsRequested((topic,), 0, token=1))
    reached = ErrorCode.REQUEST_TIMED_OUT if code is NONE else code
    assert response.codes == {"new": reached}
    assert all(1000 not in view.replicas for view in driver.cluster if view.topic == "new")


def test_added_partitions_exclude_unknown_brokers() -> None:
    """wire 17: even if the list of partition 0 starts with an unknown broker."""
    driver = quiet({"t": [PartitionSpec((1000, 1), 1, (1,))]}, (1, 2), **NEVER)
    driver.ask(CreatePartitionsRequested((NewPartitions("t", 3),), 30_000, token=1))
    assert {broker for number in (1, 2) for broker in driver.stored(f"t-{number}").replicas} == {1, 2}
