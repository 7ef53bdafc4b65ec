"""Checks of a snapshot from any source. All checks of partitions are array passes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe import kernels
from kframe.errors import InputError, SnapshotError
from kframe.model.arrays import Bool, Int32, Ragged, offsets_of
from kframe.model.ids import NO_LEADER, NO_STATE, RecoveryState
from kframe.model.lists import distinct_values, members, repeated, without_values
from kframe.model.slot_columns import REPLICAS_MAX
from kframe.model.texts import short_repr
from kframe.model.topics import topic_name_problem
from kframe.snapshot.content import SnapshotContent, named_brokers
from kframe.snapshot.decode import topic_id_text
from kframe.snapshot.facts import ELR_COLUMNS, MIN_INSYNC_CONFIG, UNCLEAN_CONFIG, PartitionFacts, TopicFacts
from kframe.snapshot.faults import REFUSE, Faults

INT32_MAX: Final = 2**31 - 1
_COUNT: Final = re.compile(r"\s*[0-9]{1,10}\s*")

#: Returns the location in the source of a topic ("topic", index, column) or a partition ("row", row, column).
Locate: TypeAlias = Callable[[Literal["topic", "row"], int, str], str]
Content = TypeVar("Content", bound=SnapshotContent)


def check_topic_name(name: str, where: str, error: type[InputError] = SnapshotError) -> None:
    """Raise ``error`` unless ``name`` is a legal topic name."""
    if topic_name_problem(name) is not None:
        raise error(where, f"topic name {short_repr(name)}", "1 to 249 of letters, digits, '.', '_' and '-'")


def check_snapshot(snapshot: Content, locate: Locate, faults: Faults = REFUSE) -> Content:
    """The snapshot without the topics whose values contradict each other or are out of range.

    The strict policy raises SnapshotError at the first such value. Topic names, counts and broker ids have been checked
    before: the readers need them to build the tables.
    """
    names = snapshot.topics.names
    for index, configs in (snapshot.topics.configs or {}).items():
        for name, expected in _wrong_configs(configs):
            faults(
                SnapshotError(locate("topic", index, f"config {name}"), short_repr(configs[name]), expected),
                names[index],
            )
    for index, first in _repeated_topic_ids(snapshot.topics):
        topic_id, pair = topic_id_text(_id_of(snapshot.topics, index)), f"{names[first]} and {names[index]}"
        error = SnapshotError(
            locate("topic", index, "topic_id"), f"topic id {topic_id} of topics {pair}", "another id for each topic"
        )
        faults(error, names[index])
        faults(error, names[first])
    snapshot = _checked_defaults(snapshot, faults)
    for fault in partition_faults(snapshot.partitions):
        for row in _first_of_topics(fault.rows, snapshot.topics, faults):
            error = SnapshotError(locate("row", row, fault.column), fault.actual(row), fault.expected(row))
            faults(error, snapshot.topics.name_of_row(row).rpartition("-")[0])
    return snapshot.without_topics(faults) if faults.topics else snapshot


def _repeated_topic_ids(topics: TopicFacts) -> Iterator[tuple[int, int]]:
    """Each topic with the id of an earlier one, and the first topic of that id. Zeros are no id."""
    if topics.topic_ids is None or not len(topics):
        return
    ids = np.ascontiguousarray(topics.topic_ids).view("V16").ravel()
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    first_of_id = first[inverse]
    repeated_ids = (first_of_id < np.arange(len(ids))) & topics.topic_ids.any(axis=1)
    for index in np.flatnonzero(repeated_ids).tolist():
        yield index, int(first_of_id[index])


def _id_of(topics: TopicFacts, index: int) -> bytes:
    assert topics.topic_ids is not None
    topic_id: bytes = topics.topic_ids[index].tobytes()
    return topic_id


def check_brokers_listed(snapshot: SnapshotContent, where: str) -> None:
    """Raise SnapshotError if a partition of a checked snapshot names a broker that the broker table does not list."""
    listed = np.array([facts.broker_id for facts in snapshot.brokers], np.int64)
    # Leaders and the members of other lists are replicas: ``check_snapshot`` refuses any others.
    partitions = snapshot.partitions
    lists = PartitionFacts(partitions.replicas, elr=partitions.elr, last_known_elr=partitions.last_known_elr)
    unlisted = without_values(named_brokers(lists), listed)
    if len(unlisted):
        raise SnapshotError(where, f"unknown broker id {int(unlisted[0])}", "only brokers that the broker table lists")


def _checked_defaults(snapshot: Content, faults: Faults) -> Content:
    """The snapshot, without the brokers' default configs if a config that a controller reads is invalid."""
    defaults = snapshot.broker_default_configs or {}
    wrong = list(_wrong_configs(defaults))
    for name, expected in wrong:
        faults(
            SnapshotError(f"{snapshot.source.name} broker default config {name}", short_repr(defaults[name]), expected)
        )
    return replace(snapshot, broker_default_configs=None) if wrong else snapshot


def _wrong_configs(configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Configs that a controller reads and whose value is invalid, with what is expected."""
    unclean, min_insync = configs.get(UNCLEAN_CONFIG), configs.get(MIN_INSYNC_CONFIG)
    if unclean is not None and unclean.strip().lower() not in ("true", "false"):
        yield UNCLEAN_CONFIG, "true or false"
    if min_insync is not None and not (_COUNT.fullmatch(min_insync) and 1 <= int(min_insync) <= INT32_MAX):
        yield MIN_INSYNC_CONFIG, f"1 to {INT32_MAX}"


class PartitionFault(Struct, frozen=True):
    """A rule that partitions violate: the ``rows`` (ascending), the column, and the texts of an error by row."""

    rule: str
    column: str
    rows: NDArray[np.int64]
    actual: Callable[[int], str]
    expected: Callable[[int], str]


def partition_faults(partitions: PartitionFacts) -> Iterator[PartitionFault]:
    """Every rule that a partition violates. No valid source of any cluster violates one.

    Lists and leaders come first: replica lists are not empty, no list repeats a broker, and leader and list members are
    replicas. Numbers and their ranges follow. An unknown column violates no rule.
    """
    faults = itertools.chain(_wrong_members(partitions), _wrong_numbers(partitions))
    return (fault for fault in faults if len(fault.rows))


def _wrong_members(partitions: PartitionFacts) -> Iterator[PartitionFault]:
    replicas = partitions.replicas
    widths = replicas.counts
    yield _fault("replicas_empty", "replicas", widths == 0, lambda _: "an empty list", "at least one replica")
    yield _fault(
        "replicas_too_many",
        "replicas",
        widths > REPLICAS_MAX,
        lambda row: f"{widths[row]} replicas",
        f"at most {REPLICAS_MAX}",
    )
    yield from _wrong_lists("replicas", replicas, replicas)
    for name, lists in {**partitions.lists(), "observers": partitions.observers}.items():
        if lists is not None and len(lists.values):
            yield from _wrong_lists(name, lists, lists if name in ELR_COLUMNS else replicas)
    leader = partitions.leader
    if leader is not None:
        yield _fault(
            "leader_range", "leader", leader < NO_LEADER, lambda row: str(leader[row]), "a broker id, or -1 for none"
        )
        if kernels.count_wrong_leaders(leader, replicas.offsets, replicas.values):
            led = leader >= 0
            yield _not_in_replicas("leader", Ragged(offsets_of(led), leader[led]), replicas)


def _wrong_lists(name: str, lists: Ragged, allowed: Ragged) -> Iterator[PartitionFault]:
    """Negative, repeated and not allowed broker ids of a column of lists. Most snapshots have none, which a
    kernel shows first."""
    if kernels.count_wrong_lists(lists.offsets, lists.values, allowed.offsets, allowed.values):
        yield from _wrong_ids(name, lists)
        if allowed is not lists:
            yield _not_in_replicas(name, lists, allowed)


def _wrong_ids(name: str, lists: Ragged) -> Iterator[PartitionFault]:
    """Negative and repeated broker ids of a column of lists."""
    negative = lists.values < 0
    yield PartitionFault(
        f"{name}_range",
        name,
        _rows_with(lists, negative),
        lambda row: str(lists[row][lists[row] < 0][0]),
        lambda _: f"broker ids of 0 to {INT32_MAX}",
    )
    repeats = repeated(lists) & ~negative

    def actual(row: int) -> str:
        span = slice(lists.offsets[row], lists.offsets[row + 1])
        return f"broker {int(lists.values[span][repeats[span]].min())} twice in {lists[row].tolist()}"

    yield PartitionFault(f"{name}_repeated", name, _rows_with(lists, repeats), actual, lambda _: "each broker once")


def _not_in_replicas(name: str, lists: Ragged, replicas: Ragged) -> PartitionFault:
    """Brokers in ``lists`` that are not replicas. Negative ids are reported by the range check."""
    unassigned = ~members(lists, replicas) & (lists.values >= 0)

    def actual(row: int) -> str:
        span = slice(lists.offsets[row], lists.offsets[row + 1])
        return f"broker {int(lists.values[span][unassigned[span]].min())}"

    return PartitionFault(
        f"{name}_not_in_replicas",
        name,
        _rows_with(lists, unassigned),
        actual,
        lambda row: f"one of the replicas {replicas[row].tolist()}",
    )


def _wrong_numbers(partitions: PartitionFacts) -> Iterator[PartitionFault]:
    stateless: Bool = np.zeros(len(partitions), bool)
    versions = partitions.partition_epoch
    if versions is not None:
        yield _fault(
            "partition_epoch_range",
            "partition_epoch",
            versions < NO_STATE,
            lambda row: str(versions[row]),
            "0 or more, or -1 for no state",
        )
        stateless = versions == NO_STATE
    for name in ("leader_epoch", "controller_epoch"):
        epochs: Int32 | None = getattr(partitions, name)
        if epochs is not None:
            yield _wrong_epochs(name, epochs, stateless)
    recovery = partitions.leader_recovery_state
    if recovery is not None:
        wrong = (recovery != RecoveryState.RECOVERED) & (recovery != RecoveryState.RECOVERING)
        yield _fault("recovery_range", "leader_recovery_state", wrong, lambda row: str(recovery[row]), "0 or 1")
    if versions is not None and partitions.leader is not None and partitions.isr is not None:
        contradictory = stateless & ((partitions.leader != NO_LEADER) | (partitions.isr.counts > 0))
        actual = "-1 (no state) beside a leader or an ISR"
        yield _fault("stateless_with_state", "partition_epoch", contradictory, lambda _: actual, "0 or more")


def _wrong_epochs(name: str, epochs: Int32, stateless: Bool) -> PartitionFault:
    wrong = (epochs < -1) | ((epochs == -1) & ~stateless)
    expected = "0 or more, or -1 where there is no state"
    return _fault(f"{name}_range", name, wrong, lambda row: str(epochs[row]), expected)


def _fault(rule: str, column: str, wrong: Bool, actual: Callable[[int], str], expected: str) -> PartitionFault:
    return PartitionFault(rule, column, np.flatnonzero(wrong), actual, lambda _: expected)


def _rows_with(lists: Ragged, mask: Bool) -> NDArray[np.int64]:
    """Rows whose list has a value that ``mask`` marks, ascending."""
    marked = np.flatnonzero(mask)
    if not len(marked):  # as in all snapshots that are read; a search would convert the offsets first
        return marked
    return distinct_values(np.searchsorted(lists.offsets, marked, side="right") - 1)


def _first_of_topics(rows: NDArray[np.int64], topics: TopicFacts, faults: Faults) -> list[int]:
    """The first of ``rows`` in each topic; the first of all rows if the policy raises the first fault."""
    if faults is REFUSE:
        return [int(rows[0])]
    ends = np.cumsum(topics.partition_counts)
    first: list[int] = rows[np.unique(np.searchsorted(ends, rows, side="right"), return_index=True)[1]].tolist()
    return first
