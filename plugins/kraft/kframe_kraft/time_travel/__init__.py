"""The metadata log over time: its records as rows, the cluster at any offset, differences and causes of changes."""

from __future__ import annotations

from kframe_kraft.time_travel.causes import LeaderCause, leader_cause
from kframe_kraft.time_travel.differences import Difference, differences
from kframe_kraft.time_travel.entries import EntryFilter, entries
from kframe_kraft.time_travel.following import LogFollower, followed_entries
from kframe_kraft.time_travel.mentions import check_mentioned
from kframe_kraft.time_travel.positions import end_of, start_of, time_text

__all__ = [
    "Difference",
    "EntryFilter",
    "LeaderCause",
    "LogFollower",
    "check_mentioned",
    "differences",
    "end_of",
    "entries",
    "followed_entries",
    "leader_cause",
    "start_of",
    "time_text",
]
