"""A Spark session for those who have none: local by default, with Python workers that are this Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kframe.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: No browser page, no banner of progress bars, loopback only; the time zone of a result is nobody's business.
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
}


def session(
    master: str | None = None, *, remote: str | None = None, app_name: str = "kframe",
    conf: Mapping[str, Any] | None = None,
) -> SparkSession:  # fmt: skip
    """The session at work, or a new one: on ``master`` (``local[*]`` unless given), or by Spark Connect on ``remote``
    (``sc://host:port``). ``conf`` prevails over kframe's settings.

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
    builder = builder.remote(remote) if remote is not None else builder.master(master or "local[*]")
    settings = dict(conf or {}) if remote is not None else {**_QUIET, **(conf or {})}
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
