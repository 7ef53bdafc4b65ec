"""The inter-broker protocol version. This is the release whose rules all brokers follow
(``inter.broker.protocol.version``)."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from kframe.errors import ConfigError

CONFIG_KEY: Final = "inter.broker.protocol.version"

#: Every release that a ZooKeeper-mode cluster can run, and the number of its internal versions (``-IV0`` ...), which
#: may be 0. The bare release means the last internal version (Kafka 3.9 ``MetadataVersion``).
RELEASES: Final = {
    "0.8.0": 0, "0.8.1": 0, "0.8.2": 0, "0.9.0": 0, "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3,
    "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2, "2.3": 2, "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2,
    "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4, "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1,
}  # fmt: skip

_RELEASE_INDEX: Final = {release: index for index, release in enumerate(RELEASES)}
# Kafka ignores the part after the release ("3.9.1" means "3.9"), unless it is an internal version.
_GRAMMAR: Final = re.compile(r"(0\.\d+\.\d+|[1-9]\d*\.\d+)(?:-IV(\d+)|(?:\.\d+)*)", re.ASCII)


class InterBrokerProtocol(Struct, frozen=True, order=True):
    """A protocol version; versions compare by age. ``release_index`` is the index of its release in ``RELEASES``."""

    release_index: int
    internal: int

    @staticmethod
    def parse(text: str, where: str = f"config key {CONFIG_KEY}") -> InterBrokerProtocol:
        """Parse Kafka's spelling: ``3.9-IV0``, ``3.9``, ``3.9.1``, ``0.10.0-IV1``.

        Raises ConfigError, naming ``where``, if Kafka 3.9 has no such version or supports it in KRaft mode only.
        """
        match = _GRAMMAR.fullmatch(text)
        release, internal = (match[1], match[2]) if match else ("", None)
        count = RELEASES.get(release)
        if count is None or (internal is not None and int(internal) >= count):
            oldest, newest = (choose(RELEASES, key=_RELEASE_INDEX.__getitem__) for choose in (min, max))
            expected = f"a version from {oldest} to {newest}, such as '3.9' or '2.4-IV1'"
            raise ConfigError(where, repr(text), expected)
        return InterBrokerProtocol(_RELEASE_INDEX[release], max(count - 1, 0) if internal is None else int(internal))

    @property
    def alter_partition(self) -> bool:
        """Whether leaders propose ISRs to the controller (KIP-497, from 2.7-IV2). Before that, they write them to
        ZooKeeper."""
        return self >= _ALTER_PARTITION_SINCE

    @property
    def recovery_state(self) -> bool:
        """Whether leaders elected uncleanly are marked as recovering (KIP-704, from 3.2-IV0)."""
        return self >= _RECOVERY_STATE_SINCE

    @property
    def topic_ids(self) -> bool:
        """Whether topics have ids (KIP-516, from 2.8-IV0)."""
        return self >= _TOPIC_IDS_SINCE

    @property
    def features(self) -> bool:
        """Whether feature levels can be finalised (KIP-584, from 2.7-IV0)."""
        return self >= _FEATURES_SINCE


_ALTER_PARTITION_SINCE: Final = InterBrokerProtocol.parse("2.7-IV2")
_FEATURES_SINCE: Final = InterBrokerProtocol.parse("2.7-IV0")
_RECOVERY_STATE_SINCE: Final = InterBrokerProtocol.parse("3.2-IV0")
_TOPIC_IDS_SINCE: Final = InterBrokerProtocol.parse("2.8-IV0")
LATEST: Final = InterBrokerProtocol.parse("3.9")
