"""What befalls a cluster, as far as storage shows it, written down so that it can be played more than once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kframe.model.brokers import Registration
from kframe.model.tables import TopicSettings, TopicTable


@dataclass(frozen=True, slots=True)
class BrokersAre:
    """These are the registrations from now on."""

    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicsCame:
    """Topics were stored, with settings beside them."""

    table: TopicTable
    settings: tuple[TopicSettings, ...]


@dataclass(frozen=True, slots=True)
class TopicsWent:
    """Topics are gone."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicGrew:
    """A topic is assigned like this, with partitions that it did not have."""

    table: TopicTable


@dataclass(frozen=True, slots=True)
class SettingsAre:
    """Settings that a controller acts on, of a topic, or of all brokers (None)."""

    topic: str | None
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class IsrsAre:
    """Leaders have changed ISRs (topic, partition, broker ids) without any decision of a controller."""

    isrs: tuple[tuple[str, int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class ControllerLeft:
    """Nobody is controller."""


@dataclass(frozen=True, slots=True)
class ControllerCame:
    """Somebody has become controller, and takes over."""


Input: TypeAlias = (
    BrokersAre | TopicsCame | TopicsWent | TopicGrew | SettingsAre | IsrsAre | ControllerLeft | ControllerCame
)


def text(change: Input) -> str:
    """In a few words."""
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
