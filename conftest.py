"""Hypothesis profiles, and the mark ``real`` of tests that need servers, brokers or Spark."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from kframe.testing.properties import load_profile

load_profile()

#: Fixtures that start servers, brokers or Spark, or that all of them depend on.
STARTING_FIXTURES = {"folder", "needs_java", "spark", "toolbox", "zookeeper"}
#: Fixtures of these names start them only if the test's module imports from STARTING_MODULES.
AMBIGUOUS_FIXTURES = {"cluster", "tools"}
STARTING_MODULES = {"kframe_zookeeper.testing.java", "kframe_zookeeper.testing.kafka"}


@pytest.fixture(scope="session", autouse=True)
def no_process_remains() -> Iterator[None]:
    """Check that every process that a test started was ended by its handle. This fixture is set up first, so its check
    runs last, after all servers of the tests were stopped."""
    yield
    process = sys.modules.get("kframe_zookeeper.testing.process")
    assert process is None or process.running_processes() == []


def pytest_collection_finish() -> None:
    """Exclude what is collected from garbage collections: each would read the objects of thousands of tests again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the mark ``real`` to tests that do not have it themselves."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if STARTING_FIXTURES & fixtures or (AMBIGUOUS_FIXTURES & fixtures and _starts(getattr(item, "module", None))):
            item.add_marker("real")
        if item.get_closest_marker("real"):
            # Longer than any timeout for a process in it: on a busy machine every process is slow.
            item.add_marker(pytest.mark.timeout(900))


def _starts(module: ModuleType | None) -> bool:
    return (
        any(getattr(member, "__module__", "") in STARTING_MODULES for member in vars(module).values())
        if module
        else False
    )
