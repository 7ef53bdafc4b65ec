"""The engine over fleets: snapshots of many clusters as Spark tables, and what-ifs on all of them at once.

Functions here come in two kinds. *Plain* ones take and give ``pyarrow.RecordBatch`` and know nothing of Spark; *frames*
take and give DataFrames and only carry the plain ones to the executors. Importing this package loads neither pyarrow
nor pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the format ``kframe`` known to a session, and let filters reach its option ``pushdown``.

    Executors need kframe installed, as they do for everything here.
    """
    from kframe.spark.source import KframeSource

    spark.dataSource.register(KframeSource)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
