"""One real Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kframe.spark import tasks
from kframe.spark.sessions import session
from tests.spark import jvm


@pytest.fixture(autouse=True)
def no_work_in_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands use Spark for the small fleets of tests; ``test_driver.py`` compares with those that do not."""
    monkeypatch.setattr(tasks, "DRIVER_PARTITIONS_MAX", 0)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two local cores; few shuffle partitions, since the tables are small."""
    directory = tmp_path_factory.mktemp("spark")
    conf = jvm.SETTINGS | {
        "spark.sql.shuffle.partitions": 2,
        "spark.default.parallelism": 2,
        "spark.sql.warehouse.dir": str(directory),
        "spark.local.dir": str(directory),
        "spark.driver.memory": "1g",
    }
    active = session("local[2]", app_name="kframe-tests", conf=conf)
    active.sparkContext.setLogLevel("ERROR")
    yield active
    active.stop()
