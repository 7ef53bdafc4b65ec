"""Hypothesis profiles, and the mark ``real`` of tests that need servers, brokers or Spark."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from verification.support.properties import load_profile

load_profile()

#: Fixtures that start servers, brokers or Spark, or that all of them depend on.
STARTING_FIXTURES = {"folder", "needs_java", "spark", "toolbox", "zookeeper"}
#: Fixtures of these names start them only if the test's module imports from STARTING_MODULES.
AMBIGUOUS_FIXTURES = {"cluster", "tools"}
STARTING_MODULES = {"verification.zookeeper.java", "verification.zookeeper.kafka"}
#: Marks of tests in few files.
RARE_MARKS = {"kernel", "matrix", "smoke"}


@pytest.fixture(scope="session", autouse=True)
def no_process_remains() -> Iterator[None]:
    """Check that every process that a test started was ended by its handle. This fixture is set up first, so its check
    runs last, after all servers of the tests were stopped."""
    yield
    process = sys.modules.get("verification.zookeeper.process")
    assert process is None or process.running_processes() == []


def pytest_collection() -> None:
    """Let processes that tests start be no workers of pytest-xdist, in which pytest-benchmark times nothing."""
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST_")]:
        del os.environ[name]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test of the mark that the run requires, if few files have it: imports take long."""
    required = str(config.option.markexpr).partition(" ")[0]
    if required not in RARE_MARKS or collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    return True if f"mark.{required}" not in collection_path.read_text(encoding="utf-8") else None


def pytest_collection_finish() -> None:
    """Exclude what is collected from garbage collections: each would read the objects of thousands of tests again.
    Full collections are rarer than by default, for the same reason: libraries and caches of tests are long-lived."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the mark ``real`` to tests that do not have it themselves."""
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if STARTING_FIXTURES & fixtures or (AMBIGUOUS_FIXTURES & fixtures and _starts(getattr(item, "module", None))):
            item.add_marker("real")
        if item.get_closest_marker("smoke") or item.get_closest_marker("matrix"):
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
