"""The engine asked "what if?" of a snapshot: brokers fail, restart or shut down, leaders are elected, partitions are
moved, topics are created, expanded or deleted; what follows."""

from __future__ import annotations

import logging

from kframe.whatif.changes import PartitionChanges
from kframe.whatif.create import create, create_partitions
from kframe.whatif.delete import delete
from kframe.whatif.health import CONDITIONS, ClusterHealth, Skew
from kframe.whatif.kraft.whatif import KraftWhatIf
from kframe.whatif.outcome import ControllerResponse, FailOn, Impact, Operation, Outcome, StepOutcome, Verb
from kframe.whatif.partition_timeline import PartitionTimeline, TimelineEntry
from kframe.whatif.plan import Plan, load_plan
from kframe.whatif.reassign import reassign
from kframe.whatif.reassignment_result import ReassignmentResult
from kframe.whatif.sweep import sweep
from kframe.whatif.sweep_result import Failure, SortBy, Sweep
from kframe.whatif.timeline import ElectionHeld, RequestsSent, StatesStored, TimelineEvent, TopicAction, TopicsWritten
from kframe.whatif.topic_results import TopicResult, TopicStatus
from kframe.whatif.whatif import WhatIf
from kframe.whatif.zookeeper import ZookeeperWhatIf

# A what-if prints nothing unless the program configures logging.
logging.getLogger("kframe").addHandler(logging.NullHandler())

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
