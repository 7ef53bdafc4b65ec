"""A Spark session for callers without a session. It is local by default. Its Python workers run this Python."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import InputError, ParameterError, pip_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: No web UI, no progress bars; results do not depend on the time zone.
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
#: The size of batches between the JVM and Python: a part of the partitions of a cluster, or packed clusters. Bytes have
#: no limit: Spark 4 would measure the batch before each row, and would fill the offsets of null lists anew each time.
#: That took minutes for 70,000 partitions without ELR.
_BATCHES: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647b",
}
#: Spark writes the text of each plan to logs and listeners many times; a text of megabytes is useless there.
_PLANS: Final = {"spark.sql.maxPlanStringLength": "16384"}
#: The driver needs to be reachable from this machine only.
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
#: For a JVM that lives for seconds on a few cores. C2 and parallel collectors would take the cores from the Python
#: workers, which do the work, and would finish too late to help.
_SHORT_LIVED: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_JVM_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: Shuffle partitions for each core of a local master; Spark's own 200 are tasks of milliseconds there.
SHUFFLES_OF_CORE: Final = 2
_INTERPRETED: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_MASTER: Final = re.compile(
    r"local|local\[(?:\*|\d+)(?:,\s*\d+)?\]|local-cluster\[.+\]|spark://[^\s/]+:\d+(?:,[^\s/]+:\d+)*|yarn|k8s://\S+",
    re.ASCII,
)
_LOCAL: Final = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?", re.ASCII)


def check_pyspark() -> None:
    """Raise InputError, which names the extra to install, if pyspark is not installed. Imports nothing."""
    if find_spec("pyspark") is None:
        raise InputError("pyspark", "no such module", f"the package: {pip_command('spark')}")


def check_master(master: str | None) -> None:
    """Raise ParameterError for what is no address of a Spark master."""
    if master is not None and not _MASTER.fullmatch(master):
        raise ParameterError("master", repr(master), "local[*], local[4], spark://host:7077, yarn or k8s://...")


def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    app_name: str = "kframe",
    conf: Mapping[str, Any] | None = None,
) -> SparkSession:
    """The active session, or a new one: on ``master``, or by Spark Connect on ``remote`` (``sc://host:port``).

    With neither it uses the master of ``spark-submit`` where that runs this program, and ``local[*]`` elsewhere.
    ``conf`` prevails over kframe's settings.

    Raises InputError if pyspark is not installed, or ``master`` is no address of a Spark master.
    """
    check_master(master)
    check_pyspark()
    from pyspark.sql import SparkSession

    # Workers take the first python3 of PATH otherwise, which may be another one, without kframe.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    settings: dict[str, Any] = {**_BATCHES, **_PLANS}
    if remote is not None:
        builder = builder.remote(remote)
    elif master is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit names the master
        settings |= _QUIET
    else:
        where = master or "local[*]"
        builder = builder.master(where)
        settings |= {**_QUIET, **_local_settings(where)}
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _local_settings(master: str) -> dict[str, Any]:
    """What goes for a driver that is its own executor. Nothing for another master."""
    if (matched := _LOCAL.fullmatch(master)) is None:
        return _LOOPBACK if master.startswith("local") else {}
    cores = (os.cpu_count() or 1) if matched[1] == "*" else int(matched[1] or 1)
    return {
        **_LOOPBACK,
        _JVM_OPTIONS: _SHORT_LIVED,
        "spark.python.daemon.module": "kframe.spark.daemon",
        "spark.sql.shuffle.partitions": SHUFFLES_OF_CORE * cores,
    }


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Have Spark compile no Java for the queries within: it takes longer than a query that only calls Python."""
    before = [(key, spark.conf.get(key)) for key in _INTERPRETED]
    try:
        for key, value in _INTERPRETED.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, known in before:
            if known is not None:
                spark.conf.set(key, known)
