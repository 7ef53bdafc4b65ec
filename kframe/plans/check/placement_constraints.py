"""Confluent's placement constraints of a topic: how many full replicas and observers each rack has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kframe.model.arrays import Bool
from kframe.model.texts import counted
from kframe.plans.check.rack_rules import OwnRules
from kframe.plans.check.rules import CheckedPlan
from kframe.snapshot import Snapshot

#: A new topic may have it from ``confluent.log.placement.constraints`` of brokers; it is then its own.
_CONFIG: Final = "confluent.placement.constraints"
#: Topics that a note names.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class PlacementConstraints:
    """The full replicas and the observers of each partition, by rack."""

    replicas: Mapping[str, int]
    observers: Mapping[str, int]

    @property
    def racks(self) -> dict[str, int]:
        """The replicas of each rack, full ones and observers."""
        return dict(Counter(self.replicas) + Counter(self.observers))

    @staticmethod
    def of(text: str) -> PlacementConstraints | None:
        """The constraints of a topic's setting; None for a text of another form, such as one without racks."""
        try:
            document = json.loads(text)
            if document["version"] not in (1, 2):
                return None
            replicas, observers = (_by_rack(document.get(kind, [])) for kind in ("replicas", "observers"))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return PlacementConstraints(replicas, observers) if replicas else None


def _by_rack(entries: Iterable[Any]) -> dict[str, int]:
    """The count of each rack. Raises an error for entries of another form."""
    counts = Counter[str]()
    for entry in entries:
        ((key, rack),) = entry["constraints"].items()
        if key != "rack" or not isinstance(rack, str) or type(entry["count"]) is not int or entry["count"] < 1:
            raise ValueError(f"found {entry}, expected a count of replicas of a rack")
        counts[rack] += entry["count"]
    return dict(counts)


def constraints_of(snapshot: Snapshot) -> dict[int, PlacementConstraints]:
    """The constraints by index of the topic, of those whose setting has the form of Confluent's."""
    parsed = {topic: PlacementConstraints.of(text) for topic, text in _settings(snapshot).items()}
    return {topic: constraints for topic, constraints in parsed.items() if constraints is not None}


def _settings(snapshot: Snapshot) -> dict[int, str]:
    """The settings that are not empty, by index of the topic."""
    settings = {topic: configs.get(_CONFIG, "") for topic, configs in (snapshot.topics.configs or {}).items()}
    return {topic: text for topic, text in settings.items() if text.strip() not in ("", "{}")}


def constraint_rules(snapshot: Snapshot, names: Sequence[str], racks: int) -> OwnRules | None:
    """The rack rules of topics with constraints; None without any, or if no rack is known.

    ``names`` are those of the first of ``racks``. A rack has as many replicas as the constraints have of it, full ones
    and observers.
    """
    constraints = constraints_of(snapshot)
    if not (constraints and names):
        return None
    numbers = {name: number for number, name in enumerate(names)}
    bounds, rules = np.zeros((len(constraints), racks, 2), np.int32), np.full(len(snapshot.topics), -1, np.int32)
    for index, (topic, limits) in enumerate(constraints.items()):
        rules[topic] = index
        for rack, count in limits.racks.items():
            if rack in numbers:
                bounds[index, numbers[rack]] = count
    return OwnRules(rules[snapshot.topics.topic_of_rows()], bounds)


def breaks_constraints(checked: CheckedPlan) -> Bool:
    """(k,) whether a target has other numbers of replicas in racks than the constraints of its topic.

    A target is compared only if the racks of all its brokers are known.
    """
    breaks, constraints = np.zeros(len(checked.plan), np.bool_), constraints_of(checked.snapshot)
    racks = _rack_of(checked.snapshot)
    for position in np.flatnonzero(np.isin(checked.topics, list(constraints))).tolist():
        replicas, observers = _target_racks(checked, racks, position)
        limits = constraints[int(checked.topics[position])]
        if None in (*replicas, *observers):
            continue
        if checked.plan.observers is None and checked.snapshot.partitions.observers is None:
            breaks[position] = Counter(replicas) != Counter(limits.racks)
        else:
            breaks[position] = (Counter(replicas), Counter(observers)) != (limits.replicas, limits.observers)
    return breaks


def _rack_of(snapshot: Snapshot) -> dict[int, str | None]:
    return {facts.broker_id: facts.rack for facts in snapshot.brokers}


def _target_racks(
    checked: CheckedPlan, racks: Mapping[int, str | None], position: int
) -> tuple[list[str | None], list[str | None]]:
    """The racks of the full replicas and of the observers of a target; None for a broker without a known rack."""
    plan = checked.plan
    target = [racks.get(broker_id) for broker_id in plan.targets.replicas[position].tolist()]
    full = len(target) - (0 if plan.observers is None else len(plan.observers[position]))
    return target[:full], target[full:]


def constraints_detail(checked: CheckedPlan, position: int) -> str:
    """What a target has in racks, and what the constraints of its topic demand."""
    limits = constraints_of(checked.snapshot)[int(checked.topics[position])]
    target = _target_racks(checked, _rack_of(checked.snapshot), position)
    planned = [_counts_text(Counter(racks)) for racks in target]
    expected = [_counts_text(counts) for counts in (limits.replicas, limits.observers)]
    return f"replicas {planned[0]}, observers {planned[1]}: expected {expected[0]}, observers {expected[1]}"


def _counts_text(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count} in {rack}" for rack, count in sorted(counts.items())) or "none"


def constraints_note(snapshot: Snapshot, topics: Iterable[int]) -> str | None:
    """The topics of these indexes whose constraints a plan does not check: no rack is known, or their form is not.

    None if there is none.
    """
    racks_known = any(broker.rack is not None for broker in snapshot.brokers)
    unchecked = _settings(snapshot).keys() - (constraints_of(snapshot).keys() if racks_known else ())
    names = [snapshot.topics.names[topic] for topic in sorted(unchecked.intersection(topics))]
    if not names:
        return None
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    listed = f"{counted(len(names), 'topic')} ({', '.join(names[:_NAMED])}{more})"
    return f"placement constraints not checked: {_CONFIG} of {listed}"
