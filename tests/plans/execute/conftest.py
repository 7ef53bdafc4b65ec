"""Journals of these tests need not survive a power failure."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def unsynchronized(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip fsync, which takes most of the time of hundreds of executions."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
