"""The engine timed: how long failures, failovers, elections and what administrators ask for take, phase by phase."""

from __future__ import annotations

from typing import Final

#: All there is to time; ``kframe.bench.works`` says what each is.
BENCHES: Final = (
    "broker-failure",
    "controller-failover",
    "preferred-election",
    "topic-creation",
    "reassignment-start",
    "reassignment-completion",
    "topic-deletion",
    "alter-partition",
)
