"""Which topics of a request its client may create, alter, delete and describe (Kafka 4.4 ``ControllerApis``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from kframe_kafka_wire.access.access import Access
from kframe_kafka_wire.protocol.codec import Fields

from kframe.plugin import ErrorCode
from kframe.plugin.kraft_controller import controller_apis
from kframe.plugin.server import AclOperation, AclResourceType

#: CREATE on the cluster allows every topic; ALTER does not.
_ON_CLUSTER: Final = frozenset({AclOperation.CREATE})


def forbidden_topics(access: Access, operation: AclOperation, names: Iterable[str]) -> frozenset[str]:
    """The topics that the client may not create or alter."""
    if operation in _ON_CLUSTER and access.is_authorized(operation, log_denied=False):
        return frozenset()
    return frozenset(name for name in set(names) if not access.is_authorized(operation, AclResourceType.TOPIC, name))


def hidden_configs(access: Access, names: Iterable[str]) -> frozenset[str]:
    """The topics whose configurations the client may not see."""
    operation, kind = AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC
    return frozenset(name for name in set(names) if not access.is_authorized(operation, kind, name, log_denied=False))


def without_configs(topics: Iterable[Fields], hidden: Collection[str]) -> list[Fields]:
    """Results of created topics, without the numbers and configurations of hidden ones."""
    hiding = {
        "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": (),
    }
    return [
        {**topic, **hiding} if topic["name"] in hidden and topic["error_code"] == ErrorCode.NONE else topic
        for topic in topics
    ]


def deletion_access(access: Access, names: Iterable[str]) -> controller_apis.TopicAccess:
    """The topics that the client may delete and describe."""
    topics = set(names)
    deletable = {name for name in topics if access.is_authorized(AclOperation.DELETE, AclResourceType.TOPIC, name)}
    describable = {name for name in topics if access.is_authorized(AclOperation.DESCRIBE, AclResourceType.TOPIC, name)}
    return controller_apis.TopicAccess(frozenset(deletable), frozenset(describable))
