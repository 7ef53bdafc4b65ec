"""The active controller: one thread decides, one makes the log durable, and responses wait for the high watermark.

A decision of the core is encoded, appended and applied, in this order, so that a log that refuses it leaves the
metadata as it was. Many decisions share an fsync: what was appended while one runs is covered by the next.
"""

from __future__ import annotations

from kframe_kraft.controller.decider import Decided, Decider, Event, WritableLog
from kframe_kraft.controller.loop import DecisionLoop, NotController
from kframe_kraft.controller.tasks import PeriodicTask, TaskSchedule

__all__ = [
    "Decided",
    "Decider",
    "DecisionLoop",
    "Event",
    "NotController",
    "PeriodicTask",
    "TaskSchedule",
    "WritableLog",
]
