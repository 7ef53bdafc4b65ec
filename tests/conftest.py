"""Print whether a run uses compiled kernels."""

from __future__ import annotations

from kframe import _core


def pytest_report_header() -> str:
    return f"kernels: {'debug, every index checked' if _core.DEBUG else 'release'} ({_core.__file__})"
