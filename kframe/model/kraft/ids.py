"""Codes and feature levels of KRaft."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"


class KraftElection(IntEnum):
    """How the controller may choose a leader (Kafka ``PartitionChangeBuilder.Election``)."""

    ONLINE = 0
    UNCLEAN = 1
    PREFERRED = 2


class MetadataLevel(IntEnum):
    """The ``metadata.version`` from which a rule holds (Kafka ``MetadataVersion``)."""

    MINIMUM = 7
    BROKER_MIGRATION = 8
    SCRAM = 11
    NO_EPOCH_BUMP_ON_SHRINK = 12
    TRANSACTIONS = 13
    DELEGATION_TOKENS = 14
    CONTROLLER_REGISTRATION = 15
    DIRECTORIES = 17
    ELR = 23
    CORDONED_DIRECTORIES = 30
    ADDRESS_RANGES = 32
    UNREGISTER_CONTROLLER = 33
    LATEST = 33


class ResourceType(IntEnum):
    """The types of resources with configurations (Kafka ``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32
