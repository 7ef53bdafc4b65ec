"""The operations of what-ifs: their parameters in the URL, the form of each, and how it is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from kframe.plugin import ParameterError
from kframe.plugin.settings import short_repr
from kframe.plugin.whatif import (
    KRAFT_VERBS,
    ElectionType,
    Outcome,
    Verb,
    WhatIf,
    directory_id,
    feature_level,
    named_topics,
    parse_topic_partition,
)
from kframe_console.tables.query import broker_ids

_Id = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Count = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Factor = Annotated[int, Meta(ge=1, le=2**15 - 1)]


class WhatIfParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """An operation, named as the command of ``kframe whatif``, and its arguments. Lists have commas.

    ``brokers`` are ids and ranges, ``partitions`` such as ``orders-0``, ``partition_count`` is that of a topic,
    ``assignments`` replicas as ``[[1,2],[2,3]]``, and ``levels`` such as ``eligible.leader.replicas.version=1``.
    """

    operation: str = ""
    brokers: str = ""
    racks: str = ""
    together: bool = True
    clean: bool | None = None
    repair_directories: bool = False
    election: Literal["preferred", "unclean"] = "preferred"
    partitions: str = ""
    topics: str = ""
    partition_count: _Count | None = None
    replication_factor: _Factor | None = None
    seed: _Id = 0
    assignments: str = ""
    directories: str = ""
    levels: str = ""
    unsafe: bool = False
    voters: str = ""
    stale_controllers: str = ""


#: Plays an operation.
_Play: TypeAlias = Callable[[WhatIf, WhatIfParameters], Outcome]


@dataclass(frozen=True, slots=True)
class OperationForm:
    """An operation. One of ``required`` must be stated; it may have ``fields`` besides. ``picks`` is what readers point
    at in the picture of the cluster."""

    title: str
    verb: Verb
    play: _Play
    required: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    picks: Literal["brokers", "directories", "nothing"] = "nothing"

    def is_complete(self, parameters: WhatIfParameters) -> bool:
        """Whether the parameters suffice. Raises ParameterError for one that the operation does not have."""
        for field in msgspec.structs.fields(parameters):
            value = getattr(parameters, field.name)
            if value != field.default and field.name not in ("operation", *self.required, *self.fields):
                expected = "none: the operation does not have it"
                raise ParameterError(field.name, short_repr(str(value)), expected)
        return not self.required or any(getattr(parameters, name) for name in self.required)


def _fail_directories(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    brokers = broker_ids("brokers", p.brokers)
    if len(brokers) != 1:
        raise ParameterError("brokers", f"{len(brokers)} brokers", "the one broker of the directories")
    return whatif.fail_directories(brokers[0], [directory_id(text) for text in _names(p.directories)])


def _elect(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    partitions = [parse_topic_partition("partitions", text) for text in _names(p.partitions)]
    return whatif.elect(ElectionType[p.election.upper()], partitions or None)


def _create(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    requested = (p.partition_count, p.replication_factor)
    counts = [-1 if count is None else count for count in requested]  # -1 as in CreateTopics
    return whatif.create(_topic(p), *counts, assignments=_replica_lists(p), seed=p.seed)


def _create_partitions(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    if p.partition_count is None:
        raise ParameterError("partition_count", "no number", "the partitions that the topic is to have")
    return whatif.create_partitions(_topic(p), p.partition_count, assignments=_replica_lists(p), seed=p.seed)


def _delete(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    return whatif.delete(named_topics(whatif.snapshot.topics.names, _names(p.topics), "topics"))


def _update_features(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    levels: dict[str, int] = {}
    for pair in _names(p.levels):
        name, equals, level = pair.partition("=")
        if not (name and equals):
            raise ParameterError("levels", short_repr(pair), "NAME=LEVEL")
        levels[name] = feature_level(name, level)
    return whatif.update_features(levels, unsafe=p.unsafe, voters=broker_ids("voters", p.voters))


def _unregister(whatif: WhatIf, p: WhatIfParameters) -> Outcome:
    stale = broker_ids("stale_controllers", p.stale_controllers)
    return whatif.unregister(broker_ids("brokers", p.brokers), stale)


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(name for name in (each.strip() for each in text.split(",")) if name))


def _chosen(p: WhatIfParameters) -> tuple[tuple[int, ...], list[str]]:
    return broker_ids("brokers", p.brokers), _names(p.racks)


def _topic(p: WhatIfParameters) -> str:
    topics = _names(p.topics)
    if len(topics) != 1:
        raise ParameterError("topics", f"{len(topics)} topics", "one topic")
    return topics[0]


def _replica_lists(p: WhatIfParameters) -> list[list[int]] | None:
    if not p.assignments.strip():
        return None
    try:
        return msgspec.json.decode(p.assignments, type=list[list[_Id]])
    except (msgspec.MsgspecError, RecursionError) as problem:
        expected = "replica lists such as [[1,2],[2,3]]"
        raise ParameterError("assignments", short_repr(p.assignments), expected) from problem


_BROKERS: Final = ("brokers", "racks")
_ADDED: Final = ("partition_count", "seed", "assignments")
_PLACED: Final = (*_ADDED, "replication_factor")


def _of_brokers(title: str, verb: Verb, play: _Play, *further: str) -> OperationForm:
    return OperationForm(title, verb, play, _BROKERS, ("together", *further), "brokers")


#: The operations by the command of ``kframe whatif``. A plan of reassignments has a page of its own.
OPERATIONS: Final[dict[str, OperationForm]] = {
    "fail": _of_brokers("Fail", Verb.FAIL, lambda w, p: w.fail(*_chosen(p), together=p.together)),
    "shutdown": _of_brokers("Shut down", Verb.SHUTDOWN, lambda w, p: w.shutdown(*_chosen(p), together=p.together)),
    "restart": _of_brokers(
        "Restart",
        Verb.RESTART,
        lambda w, p: w.restart(
            *_chosen(p), together=p.together, clean=p.clean, repair_directories=p.repair_directories
        ),
        "clean",
        "repair_directories",
    ),
    "fence": _of_brokers("Fence", Verb.FENCE, lambda w, p: w.fence(*_chosen(p), together=p.together)),
    "unfence": _of_brokers("Unfence", Verb.UNFENCE, lambda w, p: w.unfence(*_chosen(p), together=p.together)),
    "fail-directories": OperationForm(
        "Fail directories", Verb.DIRECTORY, _fail_directories, ("directories",), ("brokers",), "directories"
    ),
    "unregister": OperationForm(
        "Unregister", Verb.UNREGISTER, _unregister, ("brokers", "stale_controllers"), (), "brokers"
    ),
    "elect": OperationForm("Elect leaders", Verb.ELECT, _elect, (), ("election", "partitions")),
    "create": OperationForm("Create a topic", Verb.CREATE, _create, ("topics",), _PLACED),
    "create-partitions": OperationForm(
        "Add partitions", Verb.CREATE_PARTITIONS, _create_partitions, ("topics",), _ADDED
    ),
    "delete": OperationForm("Delete topics", Verb.DELETE, _delete, ("topics",)),
    "update-features": OperationForm(
        "Update features", Verb.FEATURE, _update_features, ("levels",), ("unsafe", "voters")
    ),
}


def operations_of(is_kraft: bool) -> dict[str, OperationForm]:
    """The operations that a cluster of this mode has."""
    return {name: form for name, form in OPERATIONS.items() if is_kraft or form.verb not in KRAFT_VERBS}
