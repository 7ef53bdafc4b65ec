"""The inter-broker protocol version: which release's rules all brokers follow (``inter.broker.protocol.version``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kframe.errors import ConfigError

_FORM: Final = re.compile(r"(0\.\d{1,2}|[1-9]\d?)\.(\d{1,2})(?:\.\d{1,2})?(?:-IV(\d{1,2}))?", re.ASCII)
#: An inter-broker protocol without "-IV" means the last of its release (Kafka's ``MetadataVersion.fromVersionString``).
_LAST: Final = 99


@dataclass(frozen=True, slots=True, order=True)
class InterBrokerProtocol:
    """A protocol version that compares by age. ``0.10.2-IV0`` has release (0, 10, 2), ``3.9-IV0`` has (3, 9, 0)."""

    release: tuple[int, int, int]
    revision: int = _LAST

    @staticmethod
    def parse(text: str) -> InterBrokerProtocol:
        """Read Kafka's spelling: ``3.9-IV0``, ``3.9``, ``3.9.1``, ``0.10.0-IV1``. Raises ConfigError on all else."""
        found = _FORM.fullmatch(text)
        if found is None:
            expected = "a version such as 3.9-IV0, 3.9 or 0.10.2"
            raise ConfigError("config key inter.broker.protocol.version", repr(text), expected)
        revision = int(found[3]) if found[3] is not None else _LAST
        if found[1].startswith("0."):
            return InterBrokerProtocol((0, int(found[1][2:]), int(found[2])), revision)
        return InterBrokerProtocol((int(found[1]), int(found[2]), 0), revision)

    @property
    def recovery_state(self) -> bool:
        """Whether leaders elected uncleanly are marked as recovering (KIP-704, from 3.2-IV0)."""
        return self >= InterBrokerProtocol((3, 2, 0), 0)


LATEST: Final = InterBrokerProtocol((3, 9, 0))
