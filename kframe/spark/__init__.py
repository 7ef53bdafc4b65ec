"""The engine over fleets: snapshots of many clusters as Spark tables, and what-ifs on all of them at once.

``whatif``, ``sweep``, ``plan`` and ``validate`` take and give DataFrames. *Stages* take and give Arrow data, a cluster
at a time, and know nothing of Spark. Importing this package loads neither pyarrow nor pyspark.
"""

from __future__ import annotations

from kframe.lazy import load_at_access

load_at_access(__name__)
