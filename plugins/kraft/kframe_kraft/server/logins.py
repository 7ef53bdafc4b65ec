"""The logins of a controller's listeners: SCRAM credentials in the metadata, and the keys of SASL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kframe_kafka_wire.listeners.security import security_of
from kframe_kafka_wire.records.credentials import ScramCredential, ScramLookup

from kframe.plugin import ConfigError
from kframe.plugin.cluster import Endpoint
from kframe.plugin.kraft import ClusterMetadata

CONTROLLER_MECHANISM: Final = "sasl.mechanism.controller.protocol"
#: The codes in records (Kafka ``ScramMechanism``).
_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}


def scram_credentials(metadata: ClusterMetadata) -> ScramLookup:
    """The credentials in the metadata, which another thread may change."""

    def find(mechanism: str, user: str) -> ScramCredential | None:
        record = metadata.scram.get((user, _MECHANISMS[mechanism]))
        if record is None:
            return None
        return ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)

    return find


def check_controller_mechanism(config: Mapping[str, str], bound: Sequence[Endpoint]) -> None:
    """Raises ConfigError if nodes would log in by a mechanism that the controller's listeners do not offer.

    kframe opens no connection to controllers, but brokers with the same key do.
    """
    mechanism = config.get(CONTROLLER_MECHANISM, "").strip()
    for endpoint in bound:
        offered = security_of(config, endpoint.listener).mechanisms()
        if mechanism and offered and mechanism not in offered:
            raise ConfigError(f"config key {CONTROLLER_MECHANISM}", mechanism, f"one of {', '.join(offered)}")
