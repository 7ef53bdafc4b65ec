"""Moves between the log directories of a broker: level its disks, or relieve a full one with the fewest bytes."""

from __future__ import annotations

from kframe.plans.disks.plan import DiskPlan, plan_disks
from kframe.plans.disks.report import report_document
from kframe.plans.disks.request import DiskRequest
from kframe.ports.administration import DirectoryName

__all__ = ["DirectoryName", "DiskPlan", "DiskRequest", "plan_disks", "report_document"]
