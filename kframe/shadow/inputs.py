"""Changes of a cluster that are visible in storage, recorded so that they can be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kframe.model.brokers import Registration
from kframe.model.tables import TopicSettings, TopicTable


@dataclass(frozen=True, slots=True)
class BrokersAre:
    """The set of registrations changed to these."""

    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicsCame:
    """Topics were stored, with their settings."""

    table: TopicTable
    settings: tuple[TopicSettings, ...]


@dataclass(frozen=True, slots=True)
class TopicsWent:
    """Topics were deleted."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicGrew:
    """Partitions were added to a topic, which now has this assignment."""

    table: TopicTable


@dataclass(frozen=True, slots=True)
class SettingsAre:
    """Settings that a controller uses changed, of a topic, or of all brokers (None)."""

    topic: str | None
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IsrsAre:
    """Leaders changed ISRs (topic, partition, broker ids) without a decision of the controller."""

    isrs: tuple[tuple[str, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class ControllerLeft:
    """There is no active controller."""


@dataclass(frozen=True, slots=True)
class ControllerCame:
    """A new controller was elected and fails over."""


Input: TypeAlias = (
    BrokersAre | TopicsCame | TopicsWent | TopicGrew | SettingsAre | IsrsAre | ControllerLeft | ControllerCame
)


def text(change: Input) -> str:
    """A short description."""
    match change:
        case BrokersAre(registrations=registrations):
            return "brokers " + (",".join(str(each.broker_id) for each in registrations) or "none")
        case TopicsCame(table=table):
            return f"{len(table.names)} topics came"
        case TopicsWent(names=names):
            return f"{len(names)} topics went"
        case TopicGrew(table=table):
            return f"{table.names[0]} grew"
        case SettingsAre(topic=topic):
            return f"settings of {topic or 'brokers'}"
        case IsrsAre(isrs=isrs):
            return f"{len(isrs)} ISRs changed"
        case ControllerLeft():
            return "the controller left"
        case ControllerCame():
            return "a controller took over"
