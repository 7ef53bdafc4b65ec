"""What-ifs, sweeps and explanations of clusters, and their results."""

from __future__ import annotations

from kframe.whatif.results.explanation import CandidateReplica, Decision, Explanation
from kframe.whatif.results.health import CONDITIONS, ClusterHealth, Skew
from kframe.whatif.results.outcome import FailOn, Operation, Outcome, Verb
from kframe.whatif.results.sweep import Sweep
from kframe.whatif.sweep import sweep
from kframe.whatif.whatif import WhatIf

__all__ = [
    "CONDITIONS",
    "CandidateReplica",
    "ClusterHealth",
    "Decision",
    "Explanation",
    "FailOn",
    "Operation",
    "Outcome",
    "Skew",
    "Sweep",
    "Verb",
    "WhatIf",
    "sweep",
]
