"""Hypothesis profiles, as in kframe's own tests, and the requirements of tests with real nodes."""

from __future__ import annotations

import pytest
from kframe_zookeeper.testing.java import missing

from kframe.testing.properties import load_profile

load_profile()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests with real nodes where Java or Maven is missing."""
    if item.get_closest_marker("real") and (lacking := missing()):
        pytest.skip(lacking)
