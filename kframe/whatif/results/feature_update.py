"""What new feature levels change, and the nodes that do not support them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

NodeState: TypeAlias = Literal["up", "fenced", "active", "voter", "not a voter", "registered", "not registered"]


class FeatureBlocker(Struct, frozen=True):
    """A node that does not support a requested level. ``min_supported`` and ``max_supported`` are null before it has
    registered."""

    node_id: int | None
    role: Literal["broker", "controller"]
    state: NodeState
    feature: str
    level: int
    min_supported: int | None
    max_supported: int | None


class RecordVersions(Struct, frozen=True):
    """A type of records whose version changes; null where a level has no such record."""

    record: str
    before: int | None
    after: int | None


class RuleChange(Struct, frozen=True):
    """A rule that begins or ends, and the level of the feature that introduced it."""

    feature: str
    level: int
    name: str
    change: Literal["begins", "ends"]
    rule: str


class FeatureUpdateRecord(Struct, frozen=True):
    """What requested feature levels change, and which nodes block them."""

    blockers: list[FeatureBlocker]
    records: list[RecordVersions]
    rules: list[RuleChange]
