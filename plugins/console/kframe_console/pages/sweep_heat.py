"""The failures of two brokers, or of two racks, as a matrix for a heat map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kframe.plugin import ParameterError
from kframe.plugin.live import Progress
from kframe.plugin.snapshot import Snapshot
from kframe.plugin.whatif import SortBy, Sweep, sweep
from kframe_console.pages.page import ContentPage, PageContext, page
from kframe_console.pages.sweep import Elr, SweepParameters, elr_enabled, sweep_result

#: Most racks whose pairs fail: ``k`` racks need about ``k`` sweeps.
_RACKS_MAX: Final = 100


class HeatContent(Struct):
    """``values[i][j]`` (j up to i): what ``by`` ranks if the units of ``labels`` i and j fail, or only i for j = i.

    Brokers are in the order of their racks, which ``racks`` names. A value is null where nothing is led.
    """

    title: str
    by: SortBy
    units: str
    labels: list[str]
    racks: list[str | None]
    values: list[list[float | int | None]]


@dataclass(frozen=True, slots=True, eq=False)
class RackPairs:
    """By effect a (k, k) matrix of each two racks, single ones on the diagonal; None is unknown."""

    racks: tuple[str, ...]
    values: Mapping[SortBy, NDArray[np.float64] | None]


@page(ContentPage, "sweep-heat", "/sweep/heat")
def heat_page(context: PageContext, parameters: SweepParameters) -> HeatContent:
    """The failures of each two brokers, or racks, as a matrix.

    Raises ParameterError if the source lacks the settings of topics, or has too many racks.
    """
    by = parameters.by
    if parameters.units == "racks":
        pairs = _rack_pairs_result(context, parameters.elr)
        values, labels = pairs.values[by], list(pairs.racks)
        racks: list[str | None] = list(pairs.racks)
    else:
        swept = sweep_result(context, parameters.elr).swept
        values = None if swept.sort_keys()[by] is None else swept.pairs(by)
        rack_of = {broker.broker_id: broker.rack for broker in context.reading.snapshot.brokers}
        order = sorted(range(len(swept.brokers)), key=lambda index: rack_of[swept.brokers[index]] or "")
        values = None if values is None else values[np.ix_(order, order)]
        labels = [str(swept.brokers[index]) for index in order]
        racks = [rack_of[int(label)] for label in labels]
    if values is None:
        actual = f"{str(by)!r} and a source without topic settings"
        raise ParameterError("by", actual, "settings with min.insync.replicas")
    units = parameters.units
    title = f"{by.effect} when two {units} fail, or one (diagonal)"
    return HeatContent(title, by, units, labels, racks, _triangle(values, by))


def _triangle(values: NDArray[np.float64], by: SortBy) -> list[list[float | int | None]]:
    numbers = values if by is SortBy.SKEW else values.astype(np.int64)
    return [
        [None if number != number else round(number, 3) for number in numbers[row, : row + 1].tolist()]  # noqa: PLR0124
        for row in range(len(numbers))
    ]


def _rack_pairs_result(context: PageContext, elr: Elr | None) -> RackPairs:
    snapshot, key = context.reading.snapshot, (context.reading.number, "rack-pairs", elr)
    title = "Fail every two racks"
    return context.jobs.result(key, title, lambda progress: _rack_pairs(snapshot, elr, progress), _nbytes)


def _nbytes(pairs: RackPairs) -> int:
    return len(SortBy) * 8 * len(pairs.racks) ** 2


def _rack_pairs(snapshot: Snapshot, elr: Elr | None, progress: Progress) -> RackPairs:
    """Sweep single racks; then pairs, as the racks of clusters in which each pair is merged into one rack."""
    alone = sweep(snapshot, depth=0, elr=elr_enabled(elr))
    racks, count = alone.rack_names, len(alone.rack_names)
    if count > _RACKS_MAX:
        raise ParameterError("units", f"{count} racks", f"brokers: pairs of more than {_RACKS_MAX} racks take too long")
    shape = (count, count)
    values = {by: None if keys is None else np.full(shape, np.nan) for by, keys in alone.sort_keys().items()}
    _fill(values, alone, [(number, number) for number in range(count)])
    rounds = list(_rounds(count))
    for done, pairs in enumerate(rounds, 1):
        progress(done - 1, len(rounds))
        merged = {racks[rack]: f"{number:09}" for number, pair in enumerate(pairs) for rack in pair}
        brokers = tuple(replace(facts, rack=merged.get(facts.rack or "")) for facts in snapshot.brokers)
        _fill(values, sweep(replace(snapshot, brokers=brokers), depth=0, elr=elr_enabled(elr)), pairs)
    return RackPairs(racks, values)


def _fill(values: Mapping[SortBy, NDArray[np.float64] | None], swept: Sweep, pairs: Sequence[tuple[int, int]]) -> None:
    """Fill in the effects of a sweep whose racks are ``pairs`` in this order."""
    first, second = np.array(pairs, np.int64).reshape(-1, 2).T
    for by, keys in swept.sort_keys().items():
        matrix = values[by]
        if matrix is not None and keys is not None:
            matrix[first, second] = matrix[second, first] = keys


def _rounds(count: int) -> Iterator[list[tuple[int, int]]]:
    """All pairs of ``count`` numbers in disjoint rounds, by the circle method of round-robin tournaments."""
    circle = [*range(count), *([-1] if count % 2 else [])]
    for _ in range(len(circle) - 1):
        half = len(circle) // 2
        pairs = zip(circle[:half], reversed(circle[half:]), strict=True)
        yield [(first, second) for first, second in pairs if first >= 0 and second >= 0]
        circle[1:] = [circle[-1], *circle[1:-1]]
