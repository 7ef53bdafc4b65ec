"""A matrix as a picture, of one dot for each value."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

#: Colours of the least and of the greatest value, and of some between: red, green and blue.
_COLOURS: Final = np.array([(247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107)], float)


def heat_image(values: NDArray[np.float64]) -> str:
    """A PNG as a data URL. Values that are not finite are white."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    share = np.nan_to_num((values - low) / (high - low) if high > low else np.zeros_like(values), nan=0.0, posinf=1.0)
    position = np.clip(share, 0, 1) * (len(_COLOURS) - 1)
    lower = np.minimum(position.astype(int), len(_COLOURS) - 2)
    part = (position - lower)[..., None]
    colours = (_COLOURS[lower] * (1 - part) + _COLOURS[lower + 1] * part).round().astype(np.uint8)
    colours[~np.isfinite(values)] = 255
    return f"data:image/png;base64,{base64.b64encode(_png(colours)).decode()}"


def _png(colours: NDArray[np.uint8]) -> bytes:
    height, width, _ = colours.shape
    rows = b"".join(b"\0" + row.tobytes() for row in colours)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
