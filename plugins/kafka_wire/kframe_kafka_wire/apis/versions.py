"""The offered APIs and versions: those of a 3.9 broker in ZooKeeper mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
METADATA: Final = 3
PRODUCE: Final = 0

#: Newest versions (``wire.md`` section 18.1). Forwarding and the new group protocol (58, 68, 69) are not offered.
NEWEST: Final[Mapping[int, int]] = {
    0: 11, 1: 17, 2: 9, 3: 12, 4: 7, 5: 4, 6: 8, 7: 3, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 16: 5,
    17: 1, 18: 4, 19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4, 27: 1, 28: 4, 29: 3, 30: 3, 31: 3, 32: 4,
    33: 2, 34: 2, 35: 4, 36: 2, 37: 3, 38: 3, 39: 2, 40: 2, 41: 3, 42: 2, 43: 2, 44: 1, 45: 0, 46: 0, 47: 0, 48: 1,
    49: 1, 50: 0, 51: 0, 56: 3, 57: 1, 60: 1, 61: 0, 65: 0, 66: 1, 67: 0,
}  # fmt: skip

#: Every offered API and its range of versions.
OFFERED: Final[Mapping[int, tuple[int, int]]] = {key: (0, newest) for key, newest in NEWEST.items()}
