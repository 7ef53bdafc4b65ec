"""Hypothesis profiles, as in kframe's own tests, and the requirements of tests with real nodes."""

from __future__ import annotations

import pytest

from verification.support.properties import load_profile
from verification.zookeeper.java import missing

load_profile()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with real nodes where Java or Maven is missing."""
    if item.get_closest_marker("real") and (lacking := missing()):
        pytest.skip(lacking)
