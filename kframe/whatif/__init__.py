"""The engine asked "what if?" of a snapshot: brokers fail, restart or shut down, leaders are elected, partitions are
moved, topics are created or deleted; what follows."""

from __future__ import annotations

from kframe.whatif.changes import PartitionChanges
from kframe.whatif.create import create
from kframe.whatif.delete import delete
from kframe.whatif.fates import Fate, TopicFate
from kframe.whatif.health import CONDITIONS, ClusterHealth, Skew
from kframe.whatif.moves import Moves
from kframe.whatif.outcome import Answer, FailOn, Impact, Operation, Outcome, StepOutcome, Verb
from kframe.whatif.plan import Plan, read_plan
from kframe.whatif.reassign import reassign
from kframe.whatif.study import WhatIf
from kframe.whatif.sweep import Failure, SortBy, Sweep, sweep
from kframe.whatif.timeline import ElectionHeld, Happening, RequestsSent, StatesStored, TopicAction, TopicsWritten
from kframe.whatif.trail import Moment, Trail

__all__ = [
    "CONDITIONS",
    "Answer",
    "ClusterHealth",
    "ElectionHeld",
    "FailOn",
    "Failure",
    "Fate",
    "Happening",
    "Impact",
    "Moment",
    "Moves",
    "Operation",
    "Outcome",
    "PartitionChanges",
    "Plan",
    "RequestsSent",
    "Skew",
    "SortBy",
    "StatesStored",
    "StepOutcome",
    "Sweep",
    "TopicAction",
    "TopicFate",
    "TopicsWritten",
    "Trail",
    "Verb",
    "WhatIf",
    "create",
    "delete",
    "read_plan",
    "reassign",
    "sweep",
]
