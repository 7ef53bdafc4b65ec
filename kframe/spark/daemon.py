"""The daemon that forks Spark's Python workers, with all that kframe's tasks need imported before the first fork.

Spark's own daemon forks first, so each worker imports NumPy, pyarrow and kframe again: half a second of a core each.
Run as ``python -m kframe.spark.daemon`` by ``spark.python.daemon.module``; only sessions on a local master set that
(``kframe.spark.sessions``).
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

#: NumPy and pyarrow come with them. pandas does not: tasks that exchange Arrow batches never import it.
_PRELOADED: Final = ("pyspark.worker", "pyspark.sql.pandas.serializers", "kframe.spark.play")


def main() -> None:
    """Import, then serve until Spark ends this process."""
    # A forked process has none of its parent's threads, so no pool of threads may start before.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _PRELOADED:
        import_module(name)
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
