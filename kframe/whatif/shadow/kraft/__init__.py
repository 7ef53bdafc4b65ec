"""Predicts what a KRaft controller writes for the events that its committed batches show, and reports differences."""

from __future__ import annotations

from kframe.whatif.shadow.kraft.batches import BatchComparison, BatchOutcome, compare_batch
from kframe.whatif.shadow.kraft.differences import RecordDifference
from kframe.whatif.shadow.kraft.shadow import LogShadow

__all__ = ["BatchComparison", "BatchOutcome", "LogShadow", "RecordDifference", "compare_batch"]
