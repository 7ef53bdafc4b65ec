"""Nodes of a cluster that are controllers and no brokers: instances of kframe.

A cluster lists the active instance beside its brokers, so that clients find the controller. It never holds replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import numpy as np

from kframe.errors import InputError, ParameterError
from kframe.model.arrays import Ragged
from kframe.snapshot.content import SnapshotContent, named_brokers
from kframe.snapshot.facts import BrokerFacts, PartitionFacts

Content = TypeVar("Content", bound=SnapshotContent)

#: The place of the note that the active controller may be an instance of kframe.
_NOTE_COLUMN: Final = "brokers.broker_id"
_WITHOUT_REPLICAS: Final = "nodes without replicas"


def with_controllers(snapshot: Content, ids: Iterable[int]) -> Content:
    """The snapshot with the ids of instances of kframe that a user states for a source that does not show them.

    Raises InputError for a KRaft cluster, and for a node that leads a partition or is in an ISR.
    """
    stated = sorted({*ids})
    if not stated:
        return snapshot
    if snapshot.is_kraft:
        raise ParameterError("controllers", _texts(stated), "none: kframe is controller in ZooKeeper mode only")
    marked = replace(
        snapshot,
        brokers=only_brokers(snapshot.brokers, stated, snapshot.partitions),
        provenance=without_assumption(snapshot),
        controllers=tuple(sorted({*snapshot.controllers, *stated})),
    )
    if (problem := _in_sync_text(marked)) is not None:
        raise ParameterError("controllers", problem, _WITHOUT_REPLICAS)
    return marked


def check_controllers(snapshot: SnapshotContent, where: str) -> None:
    """Raise InputError for an instance of kframe that leads a partition or is in an ISR."""
    if (problem := _in_sync_text(snapshot)) is not None:
        raise InputError(where, problem, _WITHOUT_REPLICAS)


def _in_sync_text(snapshot: SnapshotContent) -> str | None:
    """What is wrong with the instances of kframe: one of them leads a partition or is in an ISR."""
    controllers = snapshot.controllers
    if not controllers or (row := _first_in_sync(snapshot.partitions, controllers)) is None:
        return None
    return f"{_texts(controllers)} with a replica in sync of {snapshot.topics.name_of_row(row)}"


def only_brokers(
    brokers: Iterable[BrokerFacts], controllers: Collection[int], partitions: PartitionFacts
) -> tuple[BrokerFacts, ...]:
    """The brokers without ``controllers``. A controller that a partition names remains as an unregistered broker."""
    named = set(named_brokers(partitions).tolist()).intersection(controllers)
    facts = {broker.broker_id: broker for broker in brokers if broker.broker_id not in controllers}
    facts |= {broker_id: BrokerFacts(broker_id, registered=False) for broker_id in named}
    return tuple(facts[broker_id] for broker_id in sorted(facts))


def controller_note(controller_id: int | None, partitions: PartitionFacts) -> Mapping[str, str]:
    """The provenance of an active controller that is taken as a broker but may be an instance of kframe.

    Empty if it has replicas, or if there are no partitions.
    """
    if controller_id is None or not len(partitions) or controller_id in named_brokers(partitions).tolist():
        return {}
    note = f"{controller_id} is controller and has no replica: taken as a broker, unless --controllers {controller_id}"
    return {_NOTE_COLUMN: note}


def controller_assumption(snapshot: SnapshotContent) -> str | None:
    """The note that the active controller is taken as a broker; None if there is none."""
    return snapshot.provenance.get(_NOTE_COLUMN)


def without_assumption(snapshot: SnapshotContent) -> dict[str, str]:
    """The provenance without this note."""
    return {column: note for column, note in snapshot.provenance.items() if column != _NOTE_COLUMN}


def node_text(snapshot: SnapshotContent, broker_id: int) -> str:
    """``broker 7``, or ``node 999, an instance of kframe``."""
    if broker_id in snapshot.controllers:
        return f"node {broker_id}, an instance of kframe"
    return f"broker {broker_id}"


def broker_refusal(snapshot: SnapshotContent, broker_id: int, allowed: Sequence[int], *, up: bool) -> ParameterError:
    """The error for a node that is not among the ``allowed`` brokers: those of the snapshot, or those that are ``up``.

    It says why a broker of the snapshot is not up.
    """
    expected = "a broker of the snapshot"
    actual = node_text(snapshot, broker_id)
    if up:
        expected = "an unfenced broker" if snapshot.is_kraft else "a registered broker"
        facts = next((facts for facts in snapshot.brokers if facts.broker_id == broker_id), None)
        if facts is not None and broker_id not in snapshot.controllers:
            actual += f", {_down_text(snapshot, facts)}"
    return ParameterError("brokers", actual, f"{expected}: {', '.join(map(str, allowed)) or 'none'}")


def _down_text(snapshot: SnapshotContent, facts: BrokerFacts) -> str:
    """Why a broker is not up."""
    if facts.registered is not None:
        return "which is not up"
    reason = snapshot.provenance.get("brokers.registered")
    state = "fenced" if snapshot.is_kraft else "unregistered"
    return f"taken as {state}{f' ({reason})' if reason else ''}"


def _first_in_sync(partitions: PartitionFacts, ids: Sequence[int]) -> int | None:
    """The first row that one of ``ids`` leads, or whose ISR has it."""
    mask = np.zeros(len(partitions), np.bool_)
    if partitions.leader is not None:
        mask |= np.isin(partitions.leader, ids)
    isr = partitions.isr if partitions.isr is not None else Ragged.empty(len(partitions))
    mask |= isr.any(np.isin(isr.values, ids))
    rows = np.flatnonzero(mask)
    return int(rows[0]) if len(rows) else None


def _texts(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
