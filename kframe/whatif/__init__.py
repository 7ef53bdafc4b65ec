"""The engine asked "what if?" of a snapshot: brokers fail, restart or shut down, leaders are elected, partitions are
moved, topics are created, expanded or deleted; what follows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kframe.lazy import load_at_access

if TYPE_CHECKING:
    from kframe.whatif.changes import PartitionChanges as PartitionChanges
    from kframe.whatif.create import create as create
    from kframe.whatif.create import create_partitions as create_partitions
    from kframe.whatif.delete import delete as delete
    from kframe.whatif.health import CONDITIONS as CONDITIONS
    from kframe.whatif.health import ClusterHealth as ClusterHealth
    from kframe.whatif.health import Skew as Skew
    from kframe.whatif.kraft.whatif import KraftWhatIf as KraftWhatIf
    from kframe.whatif.outcome import ControllerResponse as ControllerResponse
    from kframe.whatif.outcome import FailOn as FailOn
    from kframe.whatif.outcome import Impact as Impact
    from kframe.whatif.outcome import Operation as Operation
    from kframe.whatif.outcome import Outcome as Outcome
    from kframe.whatif.outcome import StepOutcome as StepOutcome
    from kframe.whatif.outcome import Verb as Verb
    from kframe.whatif.partition_timeline import PartitionTimeline as PartitionTimeline
    from kframe.whatif.partition_timeline import TimelineEntry as TimelineEntry
    from kframe.whatif.plan import Plan as Plan
    from kframe.whatif.plan import load_plan as load_plan
    from kframe.whatif.reassign import reassign as reassign
    from kframe.whatif.reassignment_result import ReassignmentResult as ReassignmentResult
    from kframe.whatif.sweep import sweep as sweep
    from kframe.whatif.sweep_result import Failure as Failure
    from kframe.whatif.sweep_result import SortBy as SortBy
    from kframe.whatif.sweep_result import Sweep as Sweep
    from kframe.whatif.timeline import ElectionHeld as ElectionHeld
    from kframe.whatif.timeline import RequestsSent as RequestsSent
    from kframe.whatif.timeline import StatesStored as StatesStored
    from kframe.whatif.timeline import TimelineEvent as TimelineEvent
    from kframe.whatif.timeline import TopicAction as TopicAction
    from kframe.whatif.timeline import TopicsWritten as TopicsWritten
    from kframe.whatif.topic_results import TopicResult as TopicResult
    from kframe.whatif.topic_results import TopicStatus as TopicStatus
    from kframe.whatif.whatif import WhatIf as WhatIf
    from kframe.whatif.zookeeper import ZookeeperWhatIf as ZookeeperWhatIf

# A what-if prints nothing unless the program configures logging.
logging.getLogger("kframe").addHandler(logging.NullHandler())

load_at_access(__name__, {
    "kframe.whatif.changes": ("PartitionChanges",),
    "kframe.whatif.create": ("create", "create_partitions"),
    "kframe.whatif.delete": ("delete",),
    "kframe.whatif.health": ("CONDITIONS", "ClusterHealth", "Skew"),
    "kframe.whatif.kraft.whatif": ("KraftWhatIf",),
    "kframe.whatif.outcome": ("ControllerResponse", "FailOn", "Impact", "Operation", "Outcome", "StepOutcome", "Verb"),
    "kframe.whatif.partition_timeline": ("PartitionTimeline", "TimelineEntry"),
    "kframe.whatif.plan": ("Plan", "load_plan"),
    "kframe.whatif.reassign": ("reassign",),
    "kframe.whatif.reassignment_result": ("ReassignmentResult",),
    "kframe.whatif.sweep": ("sweep",),
    "kframe.whatif.sweep_result": ("Failure", "SortBy", "Sweep"),
    "kframe.whatif.timeline": (
        "ElectionHeld", "RequestsSent", "StatesStored", "TimelineEvent", "TopicAction", "TopicsWritten",
    ),
    "kframe.whatif.topic_results": ("TopicResult", "TopicStatus"),
    "kframe.whatif.whatif": ("WhatIf",),
    "kframe.whatif.zookeeper": ("ZookeeperWhatIf",),
})  # fmt: skip

__all__ = [
    "CONDITIONS",
    "ClusterHealth",
    "ControllerResponse",
    "ElectionHeld",
    "FailOn",
    "Failure",
    "Impact",
    "KraftWhatIf",
    "Operation",
    "Outcome",
    "PartitionChanges",
    "PartitionTimeline",
    "Plan",
    "ReassignmentResult",
    "RequestsSent",
    "Skew",
    "SortBy",
    "StatesStored",
    "StepOutcome",
    "Sweep",
    "TimelineEntry",
    "TimelineEvent",
    "TopicAction",
    "TopicResult",
    "TopicStatus",
    "TopicsWritten",
    "Verb",
    "WhatIf",
    "ZookeeperWhatIf",
    "create",
    "create_partitions",
    "delete",
    "load_plan",
    "reassign",
    "sweep",
]
