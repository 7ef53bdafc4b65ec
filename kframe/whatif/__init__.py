"""The engine asked "what if?": brokers of a snapshot fail, restart or shut down, leaders are elected; what follows."""

from __future__ import annotations

from kframe.whatif.changes import PartitionChanges
from kframe.whatif.outcome import Answer, FailOn, Impact, Operation, Outcome, StepOutcome, Verb
from kframe.whatif.standing import CONDITIONS, Skew, Standing
from kframe.whatif.study import WhatIf
from kframe.whatif.timeline import ElectionHeld, Happening, RequestsSent, StatesStored

__all__ = [
    "CONDITIONS",
    "Answer",
    "ElectionHeld",
    "FailOn",
    "Happening",
    "Impact",
    "Operation",
    "Outcome",
    "PartitionChanges",
    "RequestsSent",
    "Skew",
    "Standing",
    "StatesStored",
    "StepOutcome",
    "Verb",
    "WhatIf",
]
