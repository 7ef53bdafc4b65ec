"""The data of Kafka's znodes: decoders and their records."""

from __future__ import annotations

from kframe.snapshot.decode import Count, decode, refuse_repeated_keys, topic_id_bytes, topic_id_text
from kframe.snapshot.znodes import (
    BROKER_DECODER,
    CLUSTER_ID_DECODER,
    CONFIG_DECODER,
    CONTROLLER_DECODER,
    CONTROLLER_FIELD,
    STATE_DECODER,
    TOPIC_DECODER,
    BrokerZnode,
    ClusterIdZnode,
    ConfigZnode,
    ControllerZnode,
    SchemaVersion,
    StateZnode,
    TopicZnode,
    endpoints_of,
    is_controller_only,
    number_of,
    rack_of,
)

__all__ = [
    "BROKER_DECODER",
    "CLUSTER_ID_DECODER",
    "CONFIG_DECODER",
    "CONTROLLER_DECODER",
    "CONTROLLER_FIELD",
    "STATE_DECODER",
    "TOPIC_DECODER",
    "BrokerZnode",
    "ClusterIdZnode",
    "ConfigZnode",
    "ControllerZnode",
    "Count",
    "SchemaVersion",
    "StateZnode",
    "TopicZnode",
    "decode",
    "endpoints_of",
    "is_controller_only",
    "number_of",
    "rack_of",
    "refuse_repeated_keys",
    "topic_id_bytes",
    "topic_id_text",
]
