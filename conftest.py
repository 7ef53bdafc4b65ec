"""Hypothesis profiles, and the mark ``real`` of tests that need servers, brokers or Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from hypothesis import settings

# Deadlines are wall time, which a shared machine decides; a test that hangs is ended by its timeout instead.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("brief", max_examples=20, derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

#: Fixtures that start them, or what all of them are started from.
STARTING = {"folder", "spark", "toolbox", "zookeeper"}
#: Others of these names do so where the test's module takes something from STARTERS.
PERHAPS = {"cluster", "tools"}
STARTERS = {"kframe_zookeeper.testing.java", "kframe_zookeeper.testing.kafka"}


@pytest.fixture(scope="session", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Every process that a test has started has been ended by its handle. Here, because what is set up first is looked
    at last: when all that servers were started for is over."""
    yield
    process = sys.modules.get("kframe_zookeeper.testing.process")
    assert process is None or process.left_running() == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those tests that do not say it themselves."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if STARTING & fixtures or (PERHAPS & fixtures and _starts(getattr(item, "module", None))):
            item.add_marker("real")
        if item.get_closest_marker("real"):
            # Longer than any wait for a process in it: on a busy machine all of them take their time.
            item.add_marker(pytest.mark.timeout(900))


def _starts(module: ModuleType | None) -> bool:
    return any(getattr(one, "__module__", "") in STARTERS for one in vars(module).values()) if module else False
