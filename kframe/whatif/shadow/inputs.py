"""Changes of a cluster that are visible in storage, recorded so that they can be replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kframe.model.brokers import Registration
from kframe.model.tables import TopicSettings, TopicTable
from kframe.model.texts import counted


@dataclass(frozen=True, slots=True)
class RegistrationsChanged:
    """The registered brokers changed to these."""

    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicsCreated:
    """Topics were stored, with their settings."""

    table: TopicTable
    settings: tuple[TopicSettings, ...]


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics were deleted."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsAdded:
    """Partitions were added to a topic, which now has this assignment."""

    table: TopicTable


@dataclass(frozen=True, slots=True)
class SettingsChanged:
    """Settings that a controller uses changed, of a topic, or of all brokers (None)."""

    topic: str | None
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IsrsChanged:
    """Leaders changed ISRs (topic, partition, broker ids) without a decision of the controller."""

    isrs: tuple[tuple[str, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class ControllerLost:
    """There is no active controller."""


@dataclass(frozen=True, slots=True)
class ControllerElected:
    """A new controller was elected and fails over."""


Input: TypeAlias = (
    RegistrationsChanged
    | TopicsCreated
    | TopicsDeleted
    | PartitionsAdded
    | SettingsChanged
    | IsrsChanged
    | ControllerLost
    | ControllerElected
)


def text(change: Input) -> str:
    """A short description."""
    match change:
        case RegistrationsChanged(registrations=registrations):
            return "brokers " + (",".join(str(registration.broker_id) for registration in registrations) or "none")
        case TopicsCreated(table=table):
            return f"{counted(len(table.names), 'topic')} created"
        case TopicsDeleted(names=names):
            return f"{counted(len(names), 'topic')} deleted"
        case PartitionsAdded(table=table):
            return f"partitions added to {table.names[0]}"
        case SettingsChanged(topic=topic):
            return f"settings of {topic or 'brokers'}"
        case IsrsChanged(isrs=isrs):
            return f"{counted(len(isrs), 'ISR')} changed"
        case ControllerLost():
            return "no active controller"
        case ControllerElected():
            return "a controller was elected"
