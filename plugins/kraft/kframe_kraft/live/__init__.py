"""Follows the metadata log of a running KRaft quorum over Fetch and FetchSnapshot, without being a replica."""

from __future__ import annotations

from kframe_kraft.live.following import QuorumFollower
from kframe_kraft.live.observer import QuorumObserver
from kframe_kraft.live.opening import open_observer, read_quorum, spooled_history

__all__ = ["QuorumFollower", "QuorumObserver", "open_observer", "read_quorum", "spooled_history"]
