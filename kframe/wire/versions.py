"""Which versions of the control requests a controller sends (Kafka 3.9 ``ControllerChannelManager``).

Nothing is negotiated: ``inter.broker.protocol.version`` decides, so it must be configured as the brokers have it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from kframe.errors import ConfigError

CONFIG_KEY: Final = "inter.broker.protocol.version"

#: Every release that a ZooKeeper-mode cluster can be set to, and how many internal versions (``-IV0`` ...) it has;
#: 0 where it has none. The bare release means the last of them (Kafka 3.9 ``MetadataVersion``).
RELEASES: Final = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3,
    "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2,
    "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
}  # fmt: skip

Level: TypeAlias = tuple[int, int]
"""Place of an inter-broker protocol version in the order of all: (place of its release, internal version)."""

_PLACES: Final = {release: place for place, release in enumerate(RELEASES)}
# Kafka drops what follows the release ("3.9.1" means "3.9"), unless that is an internal version.
_GRAMMAR: Final = re.compile(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(?:-IV(\d+)|(?:\.\d+)*)", re.ASCII)


def _level(release: str, internal: int = 0) -> Level:
    return _PLACES[release], internal


#: (inter-broker protocol at least, LeaderAndIsr, UpdateMetadata, StopReplica), newest first.
CONTROL_VERSIONS: Final[tuple[tuple[Level, int, int, int], ...]] = (
    (_level("3.4"), 7, 8, 4),
    (_level("3.2"), 6, 7, 3),
    (_level("2.8", 1), 5, 7, 3),
    (_level("2.6"), 4, 6, 3),
    (_level("2.4", 1), 4, 6, 2),
    (_level("2.4"), 3, 5, 1),
    (_level("2.2"), 2, 5, 1),
    (_level("1.0"), 1, 4, 0),
    (_level("0.10.2"), 0, 3, 0),
    (_level("0.10.0", 1), 0, 2, 0),
    (_level("0.9.0"), 0, 1, 0),
    (_level("0.8.0"), 0, 0, 0),
)
#: From here on an unclean election leaves the leader RECOVERING (KIP-704).
RECOVERY_STATE_SINCE: Final = _level("3.2")


@dataclass(frozen=True, slots=True)
class ControlVersions:
    """Versions of the three control requests, and what else the inter-broker protocol decides."""

    leader_and_isr: int
    update_metadata: int
    stop_replica: int
    supports_recovery_state: bool

    @staticmethod
    def of(inter_broker_protocol: str, where: str = f"config key {CONFIG_KEY}") -> ControlVersions:
        """The versions that ``inter_broker_protocol`` ("3.9", "2.4-IV1", "0.10.0-IV1", "3.9.1") asks for.

        Raises ConfigError, naming ``where``, if Kafka 3.9 knows no such version or has it for KRaft only.
        """
        level = _parse(inter_broker_protocol, where)
        _, leader_and_isr, update_metadata, stop_replica = next(row for row in CONTROL_VERSIONS if row[0] <= level)
        return ControlVersions(leader_and_isr, update_metadata, stop_replica, level >= RECOVERY_STATE_SINCE)


def _parse(inter_broker_protocol: str, where: str) -> Level:
    match = _GRAMMAR.fullmatch(inter_broker_protocol)
    release, internal = (match[1], match[2]) if match else ("", None)
    count = RELEASES.get(release)
    if count is None or (internal is not None and int(internal) >= count):
        oldest, newest = min(RELEASES, key=_PLACES.__getitem__), max(RELEASES, key=_PLACES.__getitem__)
        raise ConfigError(
            where, repr(inter_broker_protocol), f"a version from {oldest} to {newest}, such as '3.9' or '2.4-IV1'"
        )
    return _level(release, max(count - 1, 0) if internal is None else int(internal))
