"""A matrix as a picture: one dot for each value, or a cell with its number."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Colours of the least and of the greatest value, and of some between: red, green and blue.
_COLOURS: Final = np.array([(247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107)], float)
#: The mean of red, green and blue below which a colour is dark.
_DARK: Final = 128


@dataclass(frozen=True, slots=True)
class HeatCell:
    """A value of a matrix as text, and its colour as ``#rrggbb``. ``is_dark``: text on it is light."""

    text: str
    colour: str
    is_dark: bool


def heat_image(values: NDArray[np.float64]) -> str:
    """A PNG as a data URL. Values that are not finite are white."""
    return f"data:image/png;base64,{base64.b64encode(_png(_colours(values))).decode()}"


def heat_cells(values: NDArray[np.float64]) -> list[list[HeatCell]]:
    """The cells of a matrix, for one that is small enough to show its numbers."""
    colours = _colours(values)
    dark = colours.mean(axis=2) < _DARK
    return [
        [
            HeatCell(heat_text(value), f"#{bytes(colours[row, column]).hex()}", bool(dark[row, column]))
            for column, value in enumerate(numbers)
        ]
        for row, numbers in enumerate(values.tolist())
    ]


def heat_range(values: NDArray[np.float64]) -> str:
    """The least and the greatest finite value as text."""
    finite = values[np.isfinite(values)]
    return f"{heat_text(float(finite.min()))} to {heat_text(float(finite.max()))}" if len(finite) else heat_text(np.nan)


def heat_text(value: float) -> str:
    """A value as text: counts without decimals, a dash for what is not finite."""
    if not np.isfinite(value):
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def _colours(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(k, k, 3) the colour of each value."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    share = np.nan_to_num((values - low) / (high - low) if high > low else np.zeros_like(values), nan=0.0, posinf=1.0)
    position = np.clip(share, 0, 1) * (len(_COLOURS) - 1)
    lower = np.minimum(position.astype(int), len(_COLOURS) - 2)
    part = (position - lower)[..., None]
    colours: NDArray[np.uint8] = (_COLOURS[lower] * (1 - part) + _COLOURS[lower + 1] * part).round().astype(np.uint8)
    colours[~np.isfinite(values)] = 255
    return colours


def _png(colours: NDArray[np.uint8]) -> bytes:
    height, width, _ = colours.shape
    rows = b"".join(b"\0" + row.tobytes() for row in colours)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
