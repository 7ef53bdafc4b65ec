"""Rolling restarts: batches of brokers and controllers that may be down together, and when the next one may start."""

from __future__ import annotations

from kframe.plans.restarts.plan import RestartPlan, plan_restarts
from kframe.plans.restarts.report import report_document
from kframe.plans.restarts.request import RestartRequest

__all__ = ["RestartPlan", "RestartRequest", "plan_restarts", "report_document"]
