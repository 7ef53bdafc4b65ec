"""The settings of a console."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """Settings of all pages. The limits hold for all clients together.

    ``allowed_hosts`` are the accepted values of the header ``Host``, against DNS rebinding. An empty tuple accepts
    every value.
    """

    allowed_hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    cache_bytes_max: int = 64 << 20
    rows_bytes_max: int = 12 << 20
    computations_max: int = 2
    waiting_max: int = 64
    jobs_waiting_max: int = 8
    job_results_bytes_max: int = 64 << 20
    body_bytes_max: int = 1 << 20
    allow_execute: bool = False
    """Whether actions may change the cluster."""
