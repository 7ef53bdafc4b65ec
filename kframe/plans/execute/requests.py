"""Requests of other processes to the one that executes by a journal: a file beside it names a goal."""

from __future__ import annotations

from pathlib import Path

from kframe.plans.execute.entries import Goal


def request_path(journal: Path) -> Path:
    """The file of a request."""
    return journal.with_name(f"{journal.name}.request")


def take_request(journal: Path) -> Goal | None:
    """PAUSE or ABORT if another process has requested it since the last call; None otherwise."""
    path = request_path(journal)
    try:
        text = path.read_text()
        path.unlink()
    except OSError:
        return None
    return Goal(text) if text in (Goal.PAUSE, Goal.ABORT) else None
