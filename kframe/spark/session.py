"""A Spark session for those who have none: local by default, with Python workers that are this Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: No browser page, no banner of progress bars; the time zone of a result is nobody's business.
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
}
#: Batches between the JVM and Python: as many partitions as a shard has, and no more shards, of megabytes, than a
#: worker holds with ease.
_BATCHES: Final = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
}
#: Where nobody else has to reach the driver.
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def session(
    master: str | None = None, *, remote: str | None = None, app_name: str = "kframe",
    conf: Mapping[str, Any] | None = None,
) -> SparkSession:  # fmt: skip
    """The session at work, or a new one: on ``master``, or by Spark Connect on ``remote`` (``sc://host:port``).

    With neither it is what ``spark-submit`` was told where that runs this program, and ``local[*]`` elsewhere. ``conf``
    prevails over kframe's settings.

    Raises InputError if pyspark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as problem:
        raise InputError("pyspark", str(problem), "the extra kframe-controller[spark]") from None
    # Workers take the first python3 of PATH otherwise, which may be another one, without kframe.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    settings: dict[str, Any] = dict(_BATCHES)
    if remote is not None:
        builder = builder.remote(remote)
    elif master is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit names the master
        settings |= _QUIET
    else:
        where = master or "local[*]"
        builder = builder.master(where)
        settings |= {**_QUIET, **(_LOOPBACK if where.startswith("local") else {})}
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
