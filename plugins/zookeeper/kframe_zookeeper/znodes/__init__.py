"""A strict decoder and an encoder for each znode, byte for byte as in Kafka 3.9.

All are pure functions between bytes and records. A decoder raises ZnodeError and nothing else.
"""

from __future__ import annotations

from kframe.plugin import ZnodeError
from kframe.plugin.znodes import ControllerZnode, StateZnode
from kframe_zookeeper.znodes.brokers import CONTROLLER_FIELD, decode_broker, encode_broker, is_controller_only
from kframe_zookeeper.znodes.cluster import (
    ProducerIdBlock,
    decode_cluster_id,
    decode_controller,
    decode_controller_epoch,
    decode_features,
    decode_producer_ids,
    encode_cluster_id,
    encode_controller,
    encode_controller_epoch,
    encode_features,
    encode_producer_ids,
)
from kframe_zookeeper.znodes.configs import (
    ConfigNotification,
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)
from kframe_zookeeper.znodes.instances import (
    ListenerAddress,
    RegisteredInstance,
    decode_instance,
    encode_instance,
)
from kframe_zookeeper.znodes.lists import (
    decode_log_dir_event,
    decode_partitions,
    decode_targets,
    encode_log_dir_event,
    encode_partitions,
    encode_targets,
)
from kframe_zookeeper.znodes.states import decode_state, encode_state
from kframe_zookeeper.znodes.strict import NO_EXTRA, ZNODE_BYTES_MAX, Extra
from kframe_zookeeper.znodes.topics import StoredTopic, decode_topic, encode_topics, table_of

__all__ = [
    "CONTROLLER_FIELD",
    "NO_EXTRA",
    "ZNODE_BYTES_MAX",
    "ConfigNotification",
    "ControllerZnode",
    "Extra",
    "ListenerAddress",
    "ProducerIdBlock",
    "RegisteredInstance",
    "StateZnode",
    "StoredTopic",
    "ZnodeError",
    "decode_broker",
    "decode_cluster_id",
    "decode_config",
    "decode_config_change",
    "decode_controller",
    "decode_controller_epoch",
    "decode_features",
    "decode_instance",
    "decode_log_dir_event",
    "decode_partitions",
    "decode_producer_ids",
    "decode_state",
    "decode_targets",
    "decode_topic",
    "encode_broker",
    "encode_cluster_id",
    "encode_config",
    "encode_config_change",
    "encode_controller",
    "encode_controller_epoch",
    "encode_features",
    "encode_instance",
    "encode_log_dir_event",
    "encode_partitions",
    "encode_producer_ids",
    "encode_state",
    "encode_targets",
    "encode_topics",
    "is_controller_only",
    "table_of",
]
