"""Well-formed requests to a KRaft controller with values at their limits, and of things that exist."""

from __future__ import annotations

from verification.kraft.hostile.drawn import drawn_request
from verification.kraft.hostile.known import ALICE, LOOPBACK, Known, known_values
from verification.kraft.hostile.mutated import mutated_request
from verification.kraft.hostile.valid import valid_requests

__all__ = ["ALICE", "LOOPBACK", "Known", "drawn_request", "known_values", "mutated_request", "valid_requests"]
