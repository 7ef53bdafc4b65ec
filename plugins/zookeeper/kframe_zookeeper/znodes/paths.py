"""Paths of Kafka's znodes, below the chroot (Kafka 3.9 ``ZkData``).

Functions do not validate names; callers check topic names with ``check_topic_name``.
"""

from __future__ import annotations

import re
from typing import Final

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
ADMIN: Final = "/admin"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
CLUSTER_ID: Final = "/cluster/id"
PRODUCER_IDS: Final = "/latest_producer_id_block"
FEATURE: Final = "/feature"
CONSUMERS: Final = "/consumers"
#: Exists while a KRaft controller takes over; never written.
MIGRATION: Final = "/migration"

#: The only znodes that kframe creates and Kafka does not.
KFRAME: Final = "/kframe"
#: An ephemeral record for each instance of kframe, by its controller id.
INSTANCES: Final = f"{KFRAME}/instances"

#: The name of the default settings of brokers, clients and users.
DEFAULT_ENTITY: Final = "<default>"
#: The kinds of entities that have settings.
CONFIG_KINDS: Final = ("topics", "clients", "users", "brokers", "ips")
#: Names under which sequential notifications are created.
CONFIG_CHANGE: Final = f"{CONFIG_CHANGES}/config_change_"
ISR_CHANGE: Final = f"{ISR_CHANGES}/isr_change_"
LOG_DIR_EVENT: Final = f"{LOG_DIR_EVENTS}/log_dir_event_"

#: Znodes without data that every broker creates before it registers. A controller creates them, too: a child watch
#: needs an existing node. Parents come before their children.
PERSISTENT: Final = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_IDS,
    LOG_DIR_EVENTS,
    *(f"{CONFIG}/{kind}" for kind in CONFIG_KINDS),
)

#: Roots of secrets, not readable by the world (Kafka 3.9 ``ZkData.SensitiveRootPaths``).
SENSITIVE: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")
#: Roots that a secured cluster protects (Kafka 3.9 ``ZkData.SecureRootPaths``, and ``/kafka-acl`` of its authorizer).
SECURED: Final = (
    ADMIN,
    "/brokers",
    "/cluster",
    CONFIG,
    CONTROLLER,
    CONTROLLER_EPOCH,
    ISR_CHANGES,
    PRODUCER_IDS,
    LOG_DIR_EVENTS,
    "/delegation_token",
    "/kafka-acl",
    "/kafka-acl-changes",
    "/kafka-acl-extended",
    "/kafka-acl-extended-changes",
    MIGRATION,
    FEATURE,
)

_SEQUENCE: Final = re.compile(r"-?[0-9]{10}")


def broker_path(broker_id: int) -> str:
    """A broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def instance_path(controller_id: int) -> str:
    """The record of an instance."""
    return f"{INSTANCES}/{controller_id}"


def topic_path(topic: str) -> str:
    """A topic's assignment and id."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """The parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """The parent of a state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def state_path(topic: str, partition: int) -> str:
    """A partition's leadership state."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def config_path(kind: str, name: str) -> str:
    """The settings of an entity of one of ``CONFIG_KINDS``."""
    return f"{CONFIG}/{kind}/{name}"


def delete_topic_path(topic: str) -> str:
    """The deletion mark of a topic."""
    return f"{DELETE_TOPICS}/{topic}"


def sequence_of(name: str) -> int | None:
    """The number of a sequential node. Its name or path has it. None if it has none.

    The number is an int32 that wraps around to negative values.
    """
    match = _SEQUENCE.fullmatch(name.rpartition("_")[2])
    return None if match is None else int(match[0])
