"""The versions of the control requests that a controller sends (Kafka 3.9 ``ControllerChannelManager``).

Versions are not negotiated: ``inter.broker.protocol.version`` determines them, so it must be the same as on the
brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe.model.protocol import InterBrokerProtocol

#: (inter-broker protocol at least, LeaderAndIsr, UpdateMetadata, StopReplica), newest first.
CONTROL_VERSIONS: Final[tuple[tuple[InterBrokerProtocol, int, int, int], ...]] = tuple(
    (InterBrokerProtocol.parse(since), leader_and_isr, update_metadata, stop_replica)
    for since, leader_and_isr, update_metadata, stop_replica in (
        ("3.4-IV0", 7, 8, 4),
        ("3.2-IV0", 6, 7, 3),
        ("2.8-IV1", 5, 7, 3),
        ("2.6-IV0", 4, 6, 3),
        ("2.4-IV1", 4, 6, 2),
        ("2.4-IV0", 3, 5, 1),
        ("2.2-IV0", 2, 5, 1),
        ("1.0-IV0", 1, 4, 0),
        ("0.10.2-IV0", 0, 3, 0),
        ("0.10.0-IV1", 0, 2, 0),
        ("0.9.0", 0, 1, 0),
        ("0.8.0", 0, 0, 0),
    )
)


@dataclass(frozen=True, slots=True)
class ControlVersions:
    """Versions of the three control requests."""

    leader_and_isr: int
    update_metadata: int
    stop_replica: int

    @staticmethod
    def of(protocol: InterBrokerProtocol) -> ControlVersions:
        """The versions for an inter-broker protocol."""
        return next(ControlVersions(*versions) for since, *versions in CONTROL_VERSIONS if since <= protocol)
