"""Hypothesis profiles, and which kernels a run is on."""

from __future__ import annotations

import os

from hypothesis import settings

from kframe import _core

# Deadlines are wall time, which a shared machine decides; a test that hangs is ended by its timeout instead.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("brief", max_examples=20, derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_report_header() -> str:
    return f"kernels: {'debug, every index checked' if _core.DEBUG else 'release'} ({_core.__file__})"
