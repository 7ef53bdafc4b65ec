"""What must hold of every snapshot, whichever source it came from. All checks of partitions are array passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError, SnapshotError
from kframe.model.columns import REPLICAS_MAX, Bool, Int32, Ragged
from kframe.model.ids import NO_LEADER, NO_STATE, RecoveryState
from kframe.snapshot.facts import MIN_INSYNC_CONFIG, UNCLEAN_CONFIG, PartitionFacts
from kframe.snapshot.snapshot import Snapshot, named_brokers

#: Kafka 3.9 ``Topic.validate``; the names "." and ".." are refused apart.
TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
INT32_MAX: Final = 2**31 - 1
_COUNT: Final = re.compile(r"\s*[0-9]{1,10}\s*")

#: Says where in its source a topic ("topic", index, column) or a partition ("row", row, column) was found.
Locate: TypeAlias = Callable[[Literal["topic", "row"], int, str], str]


def check_topic_name(name: str, where: str, error: type[InputError] = SnapshotError) -> None:
    """Raise ``error`` unless ``name`` is a legal topic name."""
    if not TOPIC_NAME.fullmatch(name) or name in (".", ".."):
        raise error(where, f"topic name {shown(name)}", "1 to 249 of letters, digits, '.', '_' and '-'")


def check_snapshot(snapshot: Snapshot, locate: Locate) -> None:
    """Raise SnapshotError at the first fact that contradicts another or lies outside its range.

    Topic names, counts and broker ids are taken as checked: the readers need them to build the tables.
    """
    _check_configs(snapshot, locate)
    _check_members(snapshot.partitions, locate)
    _check_numbers(snapshot.partitions, locate)


def check_brokers_listed(snapshot: Snapshot, where: str) -> None:
    """Raise SnapshotError if a partition names a broker that the broker table does not list."""
    listed = np.array([facts.broker_id for facts in snapshot.brokers], np.int64)
    strange = np.setdiff1d(named_brokers(snapshot.partitions), listed)
    if len(strange):
        raise SnapshotError(where, f"unknown broker id {int(strange[0])}", "only brokers that the broker table lists")


def shown(value: object) -> str:
    """A value as an error message shows it: quoted, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _check_configs(snapshot: Snapshot, locate: Locate) -> None:
    for index, configs in (snapshot.topics.configs or {}).items():
        for name, expected in _wrong_configs(configs):
            raise SnapshotError(locate("topic", index, f"config {name}"), shown(configs[name]), expected)
    defaults = snapshot.broker_default_configs or {}
    for name, expected in _wrong_configs(defaults):
        raise SnapshotError(f"{snapshot.source.name} broker default config {name}", shown(defaults[name]), expected)


def _wrong_configs(configs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Configs that a controller acts on and whose value is none, with what is expected."""
    unclean, min_insync = configs.get(UNCLEAN_CONFIG), configs.get(MIN_INSYNC_CONFIG)
    if unclean is not None and unclean.strip().lower() not in ("true", "false"):
        yield UNCLEAN_CONFIG, "true or false"
    if min_insync is not None and not (_COUNT.fullmatch(min_insync) and 1 <= int(min_insync) <= INT32_MAX):
        yield MIN_INSYNC_CONFIG, f"1 to {INT32_MAX}"


def _check_members(partitions: PartitionFacts, locate: Locate) -> None:
    """Replica lists are not empty, no list repeats a broker, and leader and lists are taken from the replicas."""
    replicas = partitions.replicas
    widths = replicas.counts
    _refuse(widths == 0, locate, "replicas", lambda _: "an empty list", "at least one replica")
    _refuse(widths > REPLICAS_MAX, locate, "replicas", lambda row: f"{widths[row]} replicas", f"at most {REPLICAS_MAX}")
    keys = _checked_keys(replicas, "replicas", locate)
    for name, lists in partitions.lists().items():
        if lists is not None and len(lists.values):
            wanted = _checked_keys(lists, name, locate)
            _refuse_strangers(wanted, keys, name, replicas, locate)
    leader = partitions.leader
    if leader is not None:
        _refuse(leader < NO_LEADER, locate, "leader", lambda row: str(leader[row]), "a broker id, or -1 for none")
        led = np.flatnonzero(leader >= 0)
        _refuse_strangers(led << 32 | leader[led], keys, "leader", replicas, locate)


def _checked_keys(lists: Ragged, name: str, locate: Locate) -> NDArray[np.int64]:
    """Sorted keys ``row << 32 | broker`` of lists whose ids are in range and not repeated."""
    rows = lists.owners.astype(np.int64)
    negative = np.flatnonzero(lists.values < 0)
    if len(negative):
        at = int(negative[0])
        raise SnapshotError(
            locate("row", int(rows[at]), name), str(lists.values[at]), f"broker ids of 0 to {INT32_MAX}"
        )
    keys: NDArray[np.int64] = rows << 32 | lists.values
    keys.sort()
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        row, broker = divmod(int(keys[again[0]]), 1 << 32)
        raise SnapshotError(
            locate("row", row, name), f"broker {broker} twice in {lists[row].tolist()}", "each broker once"
        )
    return keys


def _refuse_strangers(
    wanted: NDArray[np.int64], keys: NDArray[np.int64], name: str, replicas: Ragged, locate: Locate
) -> None:
    """``wanted`` keys must all be among the replicas' ``keys`` (both ascending)."""
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    strangers = np.flatnonzero(keys[at] != wanted) if len(keys) else np.arange(len(wanted))
    if len(strangers):
        row, broker = divmod(int(wanted[strangers[0]]), 1 << 32)
        raise SnapshotError(
            locate("row", row, name), f"broker {broker}", f"one of the replicas {replicas[row].tolist()}"
        )


def _check_numbers(partitions: PartitionFacts, locate: Locate) -> None:
    stateless: Bool = np.zeros(len(partitions), bool)
    versions = partitions.zk_version
    if versions is not None:
        _refuse(
            versions < NO_STATE, locate, "zk_version", lambda row: str(versions[row]), "0 or more, or -1 for no state"
        )
        stateless = versions == NO_STATE
    for name in ("leader_epoch", "controller_epoch"):
        epochs: Int32 | None = getattr(partitions, name)
        if epochs is not None:
            _refuse_epochs(epochs, stateless, name, locate)
    recovery = partitions.leader_recovery_state
    if recovery is not None:
        wrong = (recovery != RecoveryState.RECOVERED) & (recovery != RecoveryState.RECOVERING)
        _refuse(wrong, locate, "leader_recovery_state", lambda row: str(recovery[row]), "0 or 1")
    if versions is not None and partitions.leader is not None and partitions.isr is not None:
        odd = stateless & ((partitions.leader != NO_LEADER) | (partitions.isr.counts > 0))
        _refuse(odd, locate, "zk_version", lambda _: "-1 (no state) beside a leader or an ISR", "0 or more")


def _refuse_epochs(epochs: Int32, stateless: Bool, name: str, locate: Locate) -> None:
    wrong = (epochs < -1) | ((epochs == -1) & ~stateless)
    _refuse(wrong, locate, name, lambda row: str(epochs[row]), "0 or more, or -1 where there is no state")


def _refuse(wrong: Bool, locate: Locate, column: str, found: Callable[[int], Any], expected: str) -> None:
    """Raise SnapshotError for the first row of a mask."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise SnapshotError(locate("row", row, column), found(row), expected)
