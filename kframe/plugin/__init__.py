"""The interface of kframe for plugins: hooks, what they offer, leader selection and errors.

Plugins import from this package only, and their tests from ``kframe.testing`` too:

- ``kframe.plugin``: every plugin, leader selectors, and cost terms and goals of plans. Native ones include
  ``selector.h`` or ``placement.h``.
- ``kframe.plugin.store``, ``cluster``, ``columns``: stores.
- ``kframe.plugin.transport``, ``wire``: transports.
- ``kframe.plugin.server``, ``controller``: servers that expose a controller.
- ``kframe.plugin.admin``, ``live``, ``snapshot``, ``znodes``: access to live clusters.
- ``kframe.plugin.fleet``: snapshots of many clusters on Parquet.
- ``kframe.plugin.whatif``, ``plans``, ``pages``: what-ifs, plans, and pages of results.
- ``kframe.plugin.settings``: Kafka's configuration keys, JAAS and TLS.
- ``kframe.plugin.kraft``: the records of KRaft's metadata log.
- ``kframe.plugin.memory``: a store and transports in memory.

A plugin that imports from here only runs on every kframe of the same major version.
"""

from __future__ import annotations

from kframe.core.selectors.kafka_selectors import take_first
from kframe.errors import (
    ConfigError,
    ControllerFenced,
    ErrorCode,
    InputError,
    KframeError,
    ParameterError,
    SnapshotError,
    StoreError,
    ZnodeError,
)
from kframe.model.arrays import Float64, Int32, Int64, Ragged, UInt8
from kframe.model.elections import ElectionBatch, LeaderSelector
from kframe.model.ids import NO_LEADER, ElectionKind
from kframe.model.placements import FORBIDDEN, GoalTotals, PlacementBatch
from kframe.model.texts import counted, duration_text
from kframe.ports.observer import Observer
from kframe.ports.quorum_controller import CommitObserver, CommittedDecision
from kframe.registry.hookspecs import KframeHooks, hookimpl, hookspec
from kframe.registry.native import SIGNATURE, NativeFunction, NativeSelector, include_dir
from kframe.registry.placements import PLACEMENT_SIGNATURE, PartitionPlacement
from kframe.registry.scalar import PartitionElection, ScalarSelector
from kframe.registry.specs import (
    AdminSpec,
    BrokerModelSpec,
    CheckSpec,
    ClusterSpec,
    ControllerSpec,
    CostTermSpec,
    DocumentSpec,
    GoalSpec,
    ObserverSpec,
    Option,
    SelectorSpec,
    ServerSpec,
    SnapshotFormatSpec,
    StoreSpec,
    Tier,
    TransportSpec,
)

__all__ = [
    "FORBIDDEN",
    "NO_LEADER",
    "PLACEMENT_SIGNATURE",
    "SIGNATURE",
    "AdminSpec",
    "BrokerModelSpec",
    "CheckSpec",
    "ClusterSpec",
    "CommitObserver",
    "CommittedDecision",
    "ConfigError",
    "ControllerFenced",
    "ControllerSpec",
    "CostTermSpec",
    "DocumentSpec",
    "ElectionBatch",
    "ElectionKind",
    "ErrorCode",
    "Float64",
    "GoalSpec",
    "GoalTotals",
    "InputError",
    "Int32",
    "Int64",
    "KframeError",
    "KframeHooks",
    "LeaderSelector",
    "NativeFunction",
    "NativeSelector",
    "Observer",
    "ObserverSpec",
    "Option",
    "ParameterError",
    "PartitionElection",
    "PartitionPlacement",
    "PlacementBatch",
    "Ragged",
    "ScalarSelector",
    "SelectorSpec",
    "ServerSpec",
    "SnapshotError",
    "SnapshotFormatSpec",
    "StoreError",
    "StoreSpec",
    "Tier",
    "TransportSpec",
    "UInt8",
    "ZnodeError",
    "counted",
    "duration_text",
    "hookimpl",
    "hookspec",
    "include_dir",
    "take_first",
]
