"""What-ifs, sweeps and explanations of clusters, rolling restarts, and their results and documents."""

from __future__ import annotations

from kframe.model.events import ElectionType
from kframe.model.topic_partitions import parse_topic_partition
from kframe.model.topic_patterns import named_topics
from kframe.plans.restarts.document import RestartPlanDocument
from kframe.plans.restarts.plan import plan_restarts
from kframe.plans.restarts.report import report_document as restart_document
from kframe.plans.restarts.request import RestartRequest
from kframe.whatif.document import WhatIfDocument, summary_document
from kframe.whatif.engines.kraft.settings import directory_id, feature_level
from kframe.whatif.results.changes import ChangedPartition, PartitionChanges
from kframe.whatif.results.explanation import CandidateReplica, Decision, Explanation
from kframe.whatif.results.findings import FailOn
from kframe.whatif.results.health import CONDITIONS, ClusterHealth, Skew
from kframe.whatif.results.outcome import KRAFT_VERBS, Operation, Outcome, Verb
from kframe.whatif.results.sweep import METRICS as FAILURE_METRICS
from kframe.whatif.results.sweep import Failure, SortBy, Sweep
from kframe.whatif.results.sweep_records import SweepRow
from kframe.whatif.sweep import sweep
from kframe.whatif.sweep_document import SweepDocument, sweep_document
from kframe.whatif.whatif import WhatIf

__all__ = [
    "CONDITIONS",
    "FAILURE_METRICS",
    "KRAFT_VERBS",
    "CandidateReplica",
    "ChangedPartition",
    "ClusterHealth",
    "Decision",
    "ElectionType",
    "Explanation",
    "FailOn",
    "Failure",
    "Operation",
    "Outcome",
    "PartitionChanges",
    "RestartPlanDocument",
    "RestartRequest",
    "Skew",
    "SortBy",
    "Sweep",
    "SweepDocument",
    "SweepRow",
    "Verb",
    "WhatIf",
    "WhatIfDocument",
    "directory_id",
    "feature_level",
    "named_topics",
    "parse_topic_partition",
    "plan_restarts",
    "restart_document",
    "summary_document",
    "sweep",
    "sweep_document",
]
