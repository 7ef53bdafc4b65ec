"""The engine over fleets: snapshots of many clusters as Spark tables, and what-ifs on all of them at once.

Functions here come in two kinds. *Plain* ones take and give ``pyarrow.RecordBatch`` and know nothing of Spark; *frames*
take and give DataFrames and only carry the plain ones to the executors. Importing this package loads neither pyarrow
nor pyspark.
"""

from __future__ import annotations
