"""Everything that a plugin imports from kframe, in one place.

Names that stand here keep their meaning; a plugin that uses only these runs on every kframe of the same major version.
"""

from __future__ import annotations

from kframe.core.selectors.kafka_selectors import take_first
from kframe.model.columns import Int32, Ragged, UInt8
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.registry.hookspecs import KframeHooks, hookimpl, hookspec
from kframe.registry.native import SIGNATURE, NativeFunction, NativeSelector, include_dir
from kframe.registry.scalar import PartitionElection, ScalarSelector
from kframe.registry.specs import (
    AdminSpec,
    ClusterSpec,
    Observer,
    ObserverSpec,
    Option,
    SelectorSpec,
    ServerSpec,
    StoreSpec,
    Tier,
    TransportSpec,
)

__all__ = [
    "NO_LEADER",
    "SIGNATURE",
    "AdminSpec",
    "ClusterSpec",
    "ElectionBatch",
    "ElectionKind",
    "Int32",
    "KframeHooks",
    "LeaderSelector",
    "NativeFunction",
    "NativeSelector",
    "Observer",
    "ObserverSpec",
    "Option",
    "PartitionElection",
    "Ragged",
    "ScalarSelector",
    "SelectorSpec",
    "ServerSpec",
    "StoreSpec",
    "Tier",
    "TransportSpec",
    "UInt8",
    "hookimpl",
    "hookspec",
    "include_dir",
    "take_first",
]
