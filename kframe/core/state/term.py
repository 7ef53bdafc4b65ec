"""What a controller remembers for one term, in addition to the columns of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kframe.core.state.acknowledgements import Acknowledgements


@dataclass(slots=True)
class TermState:
    """Data of operations for later events of the same term. A resignation discards it."""

    unclean_by_default: bool
    """Default of ``unclean.leader.election.enable`` for topics without the setting."""
    legacy_reassignments: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Target replicas (ids) of each row that is being reassigned under ``reassignment.protocol=0.8``."""
    offline_log_dirs: set[tuple[int, int]] = field(default_factory=set)
    """(row, broker index) of unassigned replicas on offline log directories."""
    granted_shutdowns: set[int] = field(default_factory=set)
    """Registered brokers (indexes) whose last controlled shutdown request was granted."""
    clean_shutdowns: set[int] = field(default_factory=set)
    """Brokers (indexes) whose last unregistration followed a granted controlled shutdown."""
    unverified_logs: set[int] = field(default_factory=set)
    """Brokers (indexes) whose logs may have lost records (``last_replica_hold``)."""
    unsaved_topics: set[str] = field(default_factory=set)
    """Topics whose assignment storage refused. It is stored when their record becomes readable."""
    unreadable_deletions: set[str] = field(default_factory=set)
    """Topics that are marked for deletion and exist. Their record is unreadable."""
    delayed_replies: dict[int, Any] = field(default_factory=dict)
    """Requests that are answered later (``purgatory.DelayedReply``), by number."""
    last_delayed_reply: int = 0
    """The highest number of a delayed reply so far."""
    acknowledgements: Acknowledgements = field(default_factory=Acknowledgements)
