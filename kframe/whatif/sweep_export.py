"""A Sweep as a Parquet table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import ParameterError
from kframe.model.arrays import Int64, offsets_of
from kframe.whatif.files import new_figure, parquet_module, replacing, write_figure
from kframe.whatif.results.sweep import KINDS, METRICS, Failure, SortBy, Sweep

if TYPE_CHECKING:
    import pyarrow as pa

#: Broker ids along an axis of a picture.
_TICKS: Final = 20
_TITLES: Final = {
    SortBy.OFFLINE: "partitions offline",
    SortBy.UNDER_MIN_ISR: "partitions under min ISR",
    SortBy.UNCLEAN: "partitions with only an unclean election left",
    SortBy.SKEW: "leaders on the busiest broker over the mean",
}


def write_table(sweep: Sweep, positions: Int64, path: Path) -> None:
    """Write failures in this order as Parquet.

    Raises InputError if the place cannot be written or pyarrow is missing.
    """
    parquet = parquet_module()
    table = failures_table(sweep, positions)
    with replacing(path) as new:
        parquet.write_table(table, new, compression="zstd")


def failures_table(sweep: Sweep, positions: Int64) -> pa.Table:
    """Failures as records have them, a row each in this order. Means and skews are not rounded."""
    import pyarrow as pa

    racks = pa.array(list(sweep.rack_names), pa.string())
    columns = {name: sweep.column(name) for name in METRICS}
    rack, skew = sweep.rack[positions], sweep.max_mean_ratio[positions]
    return pa.table(
        {
            "kind": pa.array([str(kind) for kind in KINDS]).take(pa.array(sweep.kind[positions])),
            "brokers": _brokers(sweep, positions),
            "rack": racks.take(pa.array(rack, mask=rack < 0)),
            **{
                name: pa.nulls(len(positions), pa.int32()) if column is None else pa.array(column[positions])
                for name, column in columns.items()
            },
            "leaders_max": pa.array(sweep.leaders_max[positions]),
            "leaders_mean": pa.array(sweep.leaders_mean[positions]),
            "leader_skew": pa.array(skew, mask=np.isnan(skew)),
            **_kraft_columns(sweep, positions),
        }
    )


def _kraft_columns(sweep: Sweep, positions: Int64) -> dict[str, pa.Array]:
    """The further columns of a KRaft cluster."""
    import pyarrow as pa

    failed = sweep.directories
    if failed is None:
        return {}
    directory = failed.directory[positions]
    ids = pa.array(list(failed.ids), pa.string())
    return {
        "directory": ids.take(pa.array(directory, mask=directory < 0)),
        "may_lose_data": pa.array(failed.may_lose_data[positions]),
    }


def write_plot(sweep: Sweep, by: SortBy, path: Path) -> None:
    """Draw the pairs as a heat map, single brokers on the diagonal, as SVG or PNG by the name of the file.

    Raises InputError if the snapshot lacks what is to be drawn, the place cannot be written or matplotlib is missing.
    """
    heat, ids = heat_of(sweep, by), sweep.brokers
    figure = new_figure(8, 7)
    axes = figure.add_subplot()
    image = axes.imshow(heat, origin="lower", interpolation="nearest")
    ticks = range(0, len(ids), max(1, -(-len(ids) // _TICKS)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(list(ticks), [str(ids[tick]) for tick in ticks])
        axis.set_label_text("broker that fails")
    axes.set_title(f"{_TITLES[by]} when two brokers fail, or one (diagonal)")
    figure.colorbar(image)
    write_figure(figure, path)


def heat_of(sweep: Sweep, by: SortBy) -> NDArray[np.float64]:
    """(b, b) what ``by`` ranks, of each two registered brokers in the order of ``sweep.brokers``.

    Raises InputError if the snapshot lacks what decides it.
    """
    values = sweep.sort_keys()[by]
    if values is None:
        raise ParameterError("plot", "a snapshot without topic settings", "one that has min.insync.replicas")
    ids = np.array(sweep.brokers, np.int32)
    single, pair = (sweep.kind == KINDS.index(kind) for kind in (Failure.BROKER, Failure.PAIR))
    heat = np.zeros((len(ids), len(ids)))
    heat[np.diag_indices(len(ids))] = values[single]
    low, high = np.searchsorted(ids, sweep.first[pair]), np.searchsorted(ids, sweep.second[pair])
    heat[low, high] = heat[high, low] = values[pair]
    return heat


def _brokers(sweep: Sweep, positions: Int64) -> pa.Array:
    """The ids of the brokers that fail, as lists."""
    import pyarrow as pa

    offsets, rack = offsets_of(sweep.failed[positions]), sweep.rack[positions]
    values = np.empty(int(offsets[-1]), np.int32)
    alone = np.flatnonzero(rack < 0)
    values[offsets[alone]] = sweep.first[positions][alone]
    two = alone[sweep.failed[positions][alone] == 2]
    values[offsets[two] + 1] = sweep.second[positions][two]
    for position in np.flatnonzero(rack >= 0).tolist():
        values[offsets[position] : offsets[position + 1]] = sweep.rack_brokers[rack[position]]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))
