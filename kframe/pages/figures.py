"""Figures of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kframe.errors import InputError, pip_command

#: Labels along an axis.
_TICKS: Final = 20


def new_figure(width: float, height: float) -> Any:
    """An empty matplotlib figure of this size in inches. Raises InputError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise InputError("matplotlib", "no such module", f"the package: {pip_command('plot')}") from problem
    return Figure(figsize=(width, height), layout="constrained")


def heat_figure(title: str, axis: str, labels: Sequence[str], values: NDArray[np.float64]) -> Any:
    """A heat map of (k, k) values. Raises InputError if matplotlib is missing."""
    figure = new_figure(8, 7)
    axes = figure.add_subplot()
    image = axes.imshow(values, origin="lower", interpolation="nearest")
    ticks = range(0, len(labels), max(1, -(-len(labels) // _TICKS)))
    for each in (axes.xaxis, axes.yaxis):
        each.set_ticks(list(ticks), [labels[tick] for tick in ticks])
        each.set_label_text(axis)
    axes.set_title(title)
    figure.colorbar(image)
    return figure


def bars_figure(panels: Sequence[tuple[str, Sequence[int], Sequence[int]]], axis: str, labels: Sequence[str]) -> Any:
    """Panels with a title, and for each label a bar before and after. Raises InputError if matplotlib is missing."""
    figure = new_figure(10, 3 * len(panels))
    positions = np.arange(len(labels))
    ticks = range(0, len(labels), max(1, -(-len(labels) // _TICKS)))
    for number, (title, before, after) in enumerate(panels, 1):
        axes = figure.add_subplot(len(panels), 1, number)
        axes.bar(positions - 0.2, before, 0.4, label="before")
        axes.bar(positions + 0.2, after, 0.4, label="after")
        axes.xaxis.set_ticks(list(ticks), [labels[tick] for tick in ticks])
        axes.set_title(title)
        axes.legend()
    axes.xaxis.set_label_text(axis)
    return figure
