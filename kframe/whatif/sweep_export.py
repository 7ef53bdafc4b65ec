"""Files of a Sweep: a Parquet table and a picture."""

from __future__ import annotations

from pathlib import Path

from kframe.model.arrays import Int64
from kframe.whatif.files import parquet_module, replacing, write_figure
from kframe.whatif.results.sweep import SortBy, Sweep


def write_table(sweep: Sweep, positions: Int64, path: Path) -> None:
    """Write failures in this order as Parquet.

    Raises InputError if the place cannot be written or pyarrow is missing.
    """
    parquet = parquet_module()
    table = sweep.table(positions)
    with replacing(path) as new:
        parquet.write_table(table, new, compression="zstd")


def write_plot(sweep: Sweep, by: SortBy, path: Path) -> None:
    """Draw ``Sweep.plot`` as SVG or PNG by the name of the file.

    Raises InputError if the snapshot lacks what is to be drawn, the place cannot be written or matplotlib is missing.
    """
    write_figure(sweep.plot(by), path)
