"""Names of the levels of ``metadata.version`` (Kafka 4.4 ``MetadataVersion``)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kframe.model.kraft.ids import METADATA_VERSION
from kframe.model.whole_numbers import parse_whole

#: The largest level of a feature.
INT16_MAX: Final = 2**15 - 1

#: Each release with the number of its levels; the first level is 1.
_RELEASES: Final = (
    ("3.0", (1,)),
    ("3.1", (0,)),
    ("3.2", (0,)),
    ("3.3", (0, 1, 2, 3)),
    ("3.4", (0,)),
    ("3.5", (0, 1, 2)),
    ("3.6", (0, 1, 2)),
    ("3.7", (0, 1, 2, 3, 4)),
    ("3.8", (0,)),
    ("3.9", (0,)),
    ("4.0", (0, 1, 2, 3)),
    ("4.1", (0, 1)),
    ("4.2", (0, 1)),
    ("4.3", (0,)),
    ("4.4", (0, 1, 2)),
)
#: The levels of ``metadata.version`` from which a feature has its levels 1, 2, ... by default
#: (Kafka ``Feature.defaultLevel``).
_DEFAULT_SINCE: Final = {
    "eligible.leader.replicas.version": (26,),
    "group.version": (22,),
    "share.version": (28, 31),
    "streams.version": (29,),
    "transaction.version": (24, 24),
}
#: The level of ``metadata.version`` with which Kafka 4.4.0 formats by default.
PRODUCTION_LEVEL: Final = 30
#: The name of each level, from level 1 on.
LEVEL_NAMES: Final = tuple(f"{release}-IV{number}" for release, numbers in _RELEASES for number in numbers)


def level_name(level: int) -> str:
    """The name of a level, such as ``4.0-IV3``; the number in words if the level has no name."""
    return LEVEL_NAMES[level - 1] if 1 <= level <= len(LEVEL_NAMES) else f"level {level}"


def parse_level(text: str) -> int | None:
    """The level that a number, a name or a release means (a release: its last level), or None."""
    if (level := parse_whole(text, INT16_MAX)) is not None:
        return level
    names = [name for name in LEVEL_NAMES if name == text or name.startswith(f"{text}-IV")]
    return LEVEL_NAMES.index(names[-1]) + 1 if names else None


def default_levels(metadata_version: int, named: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
    """The levels of a new log's features above 0, by name: ``named``, else those at a level of ``metadata.version``."""
    defaults = {name: sum(metadata_version >= since for since in each) for name, each in _DEFAULT_SINCE.items()}
    levels = {METADATA_VERSION: metadata_version, **dict(sorted({**defaults, **named}.items()))}
    return {name: level for name, level in levels.items() if level}
