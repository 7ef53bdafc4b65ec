"""``kframe log why``: the event and the rule that gave a partition its leader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from click.testing import CliRunner
from kframe_kraft.commands.log import group

from kframe.plugin.kraft import records
from verification.kraft.log_commands import cause_of, run
from verification.kraft.written_log import (
    WrittenLog,
    change,
    partition,
    register,
    registration,
    small_cluster,
)

FENCE, UNFENCE = 1, -1
LATER = "later in the order of replicas"
UNCLEAN_RESTART = "broker restarted after an unclean stop"


def fence(log: WrittenLog) -> None:
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=FENCE))


def fence_in_the_next_batch(log: WrittenLog) -> None:
    log.append(change(0, leader=2, isr=(2, 3)))
    log.append(registration(1, fenced=FENCE))


def shut_down(log: WrittenLog) -> None:
    log.append(registration(1, in_controlled_shutdown=1), change(0, leader=2, isr=(2, 3)))


def unregister(log: WrittenLog) -> None:
    log.append(change(0, leader=2, isr=(2, 3)), records.UnregisterBrokerRecord(broker_id=1, broker_epoch=10))


def restart(log: WrittenLog) -> None:
    log.append(change(0, leader=2, isr=(2, 3)), register(1, epoch=11, fenced=True, incarnation=2))


def prefer(log: WrittenLog) -> None:
    fence(log)
    log.append(registration(1, fenced=UNFENCE))
    log.append(change(0, isr=(2, 3, 1)))
    log.append(change(0, leader=1))


def reassign(log: WrittenLog) -> None:
    log.append(change(0, removing_replicas=(1,)))
    log.append(
        change(
            0, leader=2, isr=(2, 3), replicas=(2, 3), removing_replicas=(), directories=partition(0, 2, 3).directories
        )
    )


@pytest.mark.parametrize(
    "events, event, event_offset, rule, not_elected",
    [
        (fence, "broker fenced: broker 1", 10, "in-sync", {1: "broker fenced", 3: LATER}),
        (fence_in_the_next_batch, "broker fenced: broker 1", 10, "in-sync", {1: "broker fenced", 3: LATER}),
        (shut_down, "controlled shutdown: broker 1", 9, "in-sync", {1: "controlled shutdown", 3: LATER}),
        (unregister, "broker unregistered: broker 1", 10, "in-sync", {1: "broker unregistered", 3: LATER}),
        (restart, f"{UNCLEAN_RESTART}: broker 1", 10, "in-sync", {1: UNCLEAN_RESTART, 3: LATER}),
        (prefer, "preferred election", None, "preferred election", {2: LATER, 3: LATER}),
        (reassign, "AlterPartition of the leader", None, "in-sync", {3: LATER}),
    ],
)
def test_why_names_the_event(
    tmp_path: Path,
    events: Callable[[WrittenLog], None],
    event: str,
    event_offset: int | None,
    rule: str,
    not_elected: dict[int, str],
) -> None:
    log = small_cluster(tmp_path)
    events(log)
    cause = cause_of(log)
    assert (cause.event, cause.event_offset) == (event, event_offset), cause
    assert cause.rule is not None
    assert rule in cause.rule
    assert cause.not_elected == not_elected


BEGIN, END = records.BeginTransactionRecord(name="work"), records.EndTransactionRecord()
#: A request that cancels two reassignments. Before it min.insync.replicas is 2, after the first change at most 1.
CANCELLED = tuple(
    change(
        number,
        leader=leader,
        isr=(leader,),
        replicas=(leader,),
        adding_replicas=(),
        eligible_leader_replicas=elr,
        directories=partition(number, leader).directories,
    )
    for number, leader, elr in ((0, 1, (2, 3)), (1, 2, (3,)))
)


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param([CANCELLED], id="one batch"),
        pytest.param([CANCELLED[::-1]], id="partition 0 last"),
        pytest.param([(CANCELLED[0], *[change(0)] * 9_999), CANCELLED[1:]], id="a decision in two batches"),
        pytest.param([(BEGIN, *CANCELLED, END)], id="a transaction"),
        pytest.param([(BEGIN,), CANCELLED[:1], (*CANCELLED[1:], END)], id="a transaction in batches"),
    ],
)
def test_why_decides_all_changes_of_a_request_from_the_state_before_it(
    tmp_path: Path, batches: list[tuple[records.MetadataRecord, ...]]
) -> None:
    log = small_cluster(tmp_path, elr=True)
    log.append(change(0, adding_replicas=(2, 3)), change(1, adding_replicas=(3,)))
    for content in batches:
        log.append(*content)
    assert [cause_of(log, f"orders-{number}").event for number in (0, 1)] == ["reassignment cancelled"] * 2


def test_why_of_a_topic_that_its_transaction_created(tmp_path: Path) -> None:
    log, topic_id = small_cluster(tmp_path), UUID(int=77)
    created = msgspec.structs.replace(partition(0, 1, 2, leader=2), topic_id=topic_id)
    log.append(BEGIN, records.TopicRecord(name="more", topic_id=topic_id), created)
    log.append(msgspec.structs.replace(change(0, leader=1), topic_id=topic_id), END)
    assert cause_of(log, "more-0").event == "preferred election"


def test_why_names_failure_of_the_last_directory(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(change(0, leader=2, isr=(2, 3)), registration(1))
    assert cause_of(log).event == "directory failed: broker 1"


def test_why_of_an_election_from_the_elr(tmp_path: Path) -> None:
    log = small_cluster(tmp_path, elr=True)
    log.append(change(1, leader=3, isr=(3,), eligible_leader_replicas=(2,)), registration(2, fenced=FENCE))
    last = change(1, leader=-1, isr=(), eligible_leader_replicas=(2, 3), last_known_elr=(3,))
    log.append(last, registration(3, fenced=FENCE))
    assert cause_of(log, "orders-1").rule is not None
    assert cause_of(log, "orders-1").leader == -1
    log.append(
        registration(2, fenced=UNFENCE), change(1, leader=2, isr=(2,), eligible_leader_replicas=(3,), last_known_elr=())
    )
    cause = cause_of(log, "orders-1")
    assert (cause.event, cause.not_elected) == ("broker unfenced: broker 2", {3: "fenced"})
    assert cause.rule is not None
    assert "ELR" in cause.rule


def test_why_without_matching_event_has_null_event(tmp_path: Path) -> None:
    log = small_cluster(tmp_path)
    log.append(change(0, leader=3, isr=(3,)), registration(1, fenced=FENCE))
    cause = cause_of(log)
    assert (cause.event, cause.leader, cause.offset) == (None, 3, 9)
    document = run("why", tmp_path, "orders-0")
    assert (document["event"], document["leader"]) == (None, 3)


@pytest.mark.parametrize("name", ["orders-7", "nothing-0", "orders"])
def test_why_of_unknown_partition_is_input_error(tmp_path: Path, name: str) -> None:
    small_cluster(tmp_path)
    result = CliRunner().invoke(group, ["why", str(tmp_path), name])
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
