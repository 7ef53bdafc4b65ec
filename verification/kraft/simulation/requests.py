"""The requests of brokers and administrators to the controller, and those between brokers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from kframe_kraft.disk import SnapshotId
from kframe_kraft.quorum import FetchAnswer

from kframe.plugin.kraft import ControllerResult, records
from kframe.plugin.kraft_controller import KraftContext, RequestRefused
from kframe_simulator.broker.messages import Request
from verification.kraft.simulation.image import Image

#: A rule of the core with its request. It gets the context and the end of the log.
Rule: TypeAlias = Callable[[KraftContext, int], ControllerResult[Any]]
#: A decision with its records and its response, or the refusal.
Decided: TypeAlias = ControllerResult[Any] | RequestRefused
#: Compares a decision with the metadata and the end of the log before it. It returns what is wrong.
Comparison: TypeAlias = Callable[[Image, int, Decided], str | None]


@dataclass(frozen=True, slots=True)
class ControllerRequest:
    """A request that a rule of the core decides. The response is that of the rule, or RequestRefused."""

    rule: Rule
    comparison: Comparison | None = None
    is_repeatable: bool = False
    """Whether the rule changes no state, so that it decides the same if it is asked again."""


@dataclass(frozen=True, slots=True)
class Done:
    """The response of a rule that has none."""


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The response to a Fetch of the metadata log. ``epoch`` is the controller's."""

    answer: FetchAnswer
    epoch: int


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """FetchSnapshot of a whole snapshot."""

    snapshot_id: SnapshotId


@dataclass(frozen=True, slots=True)
class SnapshotResponse:
    """The records of a snapshot."""

    content: list[records.MetadataRecord]


@dataclass(frozen=True, slots=True)
class BrokerRequest:
    """A request to a broker. ``broker_epoch`` is that of a broker that sends it, -1 of a client."""

    message: Request
    broker_epoch: int = -1
