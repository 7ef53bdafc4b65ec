"""Plans: how they are generated, put in stages and executed, and what pages show of them."""

from __future__ import annotations

from typing import Final

from jinja2 import PackageLoader

from kframe.model.plan import Plan
from kframe.plans.check.resolve import resolve_plan
from kframe.plans.check.rules import CheckedPlan
from kframe.plans.execute.entries import ExecutionLimits, ExecutionStarted, Goal, GoalChanged
from kframe.plans.execute.executor import Executor, check_cluster, succeeded
from kframe.plans.execute.journal import Journal, JournalError, read_journal
from kframe.plans.execute.prepare import CheckedExecution, PreparedPlan, StalePlan, check_execution
from kframe.plans.execute.remaining import remaining_effect
from kframe.plans.execute.report import ExecutionDocument, ExecutionEffect, ExecutionProgress, execution_document
from kframe.plans.execute.requests import take_request
from kframe.plans.execute.state import ExecutionState
from kframe.plans.file.read import PlanFile, Stamp
from kframe.plans.file.write import plan_lines
from kframe.plans.generate import PlanProposal, PlanRequest, plan
from kframe.plans.generate.document import GeneratedPlanDocument
from kframe.plans.generate.page import page_values
from kframe.plans.generate.report import report_document
from kframe.plans.generate.review import PlanReview
from kframe.plans.generate.sizes import ReplicaSizes, read_sizes
from kframe.plans.stage.manifest import PlanStage, StageManifest
from kframe.plans.stage.page import SPANS_MAX, failure_rows, stage_axis, stage_rows
from kframe.plans.stage.request import StageRequest
from kframe.plans.stage.stages import StagedPlan, stage_plan

__all__ = [
    "SPANS_MAX",
    "TEMPLATES",
    "CheckedExecution",
    "CheckedPlan",
    "ExecutionDocument",
    "ExecutionEffect",
    "ExecutionLimits",
    "ExecutionProgress",
    "ExecutionStarted",
    "ExecutionState",
    "Executor",
    "GeneratedPlanDocument",
    "Goal",
    "GoalChanged",
    "Journal",
    "JournalError",
    "Plan",
    "PlanFile",
    "PlanProposal",
    "PlanRequest",
    "PlanReview",
    "PlanStage",
    "PreparedPlan",
    "ReplicaSizes",
    "StageManifest",
    "StageRequest",
    "StagedPlan",
    "StalePlan",
    "Stamp",
    "check_cluster",
    "check_execution",
    "execution_document",
    "failure_rows",
    "page_values",
    "plan",
    "plan_lines",
    "read_journal",
    "read_sizes",
    "remaining_effect",
    "report_document",
    "resolve_plan",
    "stage_axis",
    "stage_plan",
    "stage_rows",
    "succeeded",
    "take_request",
]

#: The templates of pages about plans: ``plan_sections.html`` shows what ``page_values`` returns.
TEMPLATES: Final = PackageLoader("kframe.plans.generate")
