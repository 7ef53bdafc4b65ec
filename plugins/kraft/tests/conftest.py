"""Hypothesis profiles, as in kframe's own tests, and the requirements of tests with real nodes."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from kframe_zookeeper.testing.java import missing

settings.register_profile("steady", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("brief", max_examples=20, derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with real nodes where Java or Maven is missing."""
    if item.get_closest_marker("real") and (lacking := missing()):
        pytest.skip(lacking)
