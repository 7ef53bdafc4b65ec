"""The leaves that ``kafka-metadata-shell`` 4.3 prints, from its output and from the metadata of a cluster.

A leaf is the path of names and its text. The texts are those of Kafka's ``toString`` methods. The shell prints a quota
with a default entity under an empty name and without content, so such quotas have no leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias
from uuid import UUID

from kframe.plugin.kraft import ClusterMetadata, partition_record, records, uuid_text

Leaf: TypeAlias = tuple[tuple[str, ...], str]
_TYPES: Final = {2: "TOPIC", 4: "BROKER", 16: "CLIENT_METRICS", 32: "GROUP"}
_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
_QUOTA_TYPES: Final = {"client-id": "clientId", "user": "user", "ip": "ip"}
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ACL_TYPES: Final = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER"}
_PATTERNS: Final = {3: "LITERAL", 4: "PREFIXED"}
_OPERATIONS: Final = {2: "ALL", 3: "READ", 4: "WRITE", 7: "ALTER"}
_PERMISSIONS: Final = {2: "DENY", 3: "ALLOW"}
_LEVELS: Final = {21: "3.9-IV0", 25: "4.0-IV3", 27: "4.1-IV1", 29: "4.2-IV1", 30: "4.3-IV0"}
#: What is not metadata of the cluster: the shell's release, and where its image ends.
_NOT_METADATA: Final = ("commitId", "version", "provenance")


def printed_leaves(tree: str) -> set[Leaf]:
    """The leaves below ``image`` in the output of ``tree /``."""
    leaves: set[Leaf] = set()
    path: list[str] = []
    for line in tree.splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip(" "))) // 2
        path = path[:depth]
        if line.endswith(":"):
            path.append(line.strip()[:-1])
        else:
            leaves.add((tuple(path[1:]), line.strip()))
    return {(path, text) for path, text in leaves if path and path[0] not in _NOT_METADATA}


def metadata_leaves(metadata: ClusterMetadata) -> set[Leaf]:
    """The leaves that the shell prints for this metadata."""
    return {
        *_brokers(metadata),
        *_topics(metadata),
        *_features(metadata),
        *_configs(metadata),
        *_access(metadata),
        (("producerIds", "nextProducerId"), str(metadata.next_producer_id or -1)),
    }


def _brokers(metadata: ClusterMetadata) -> Iterator[Leaf]:
    for broker_id, broker in metadata.brokers.registrations.items():
        rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
        text = (
            f"BrokerRegistration(id={broker_id}, epoch={broker.broker_epoch}, "
            f"incarnationId={uuid_text(broker.incarnation_id)}, {_endpoints(broker.end_points)}, "
            f"{_supported(broker.features)}, rack={rack}, fenced={_java(broker.fenced)}, "
            f"inControlledShutdown={_java(broker.in_controlled_shutdown)}, "
            f"isMigratingZkBroker={_java(broker.is_migrating_zk_broker)}, directories={_ids(broker.directories)}, "
            f"cordonedDirectories={'null' if broker.cordoned is None else _ids(broker.cordoned)})"
        )
        yield ("cluster", "brokers", str(broker_id)), text
    for controller_id, controller in metadata.controllers.items():
        text = (
            f"ControllerRegistration(id={controller_id}, incarnationId={uuid_text(controller.incarnation_id)}, "
            f"zkMigrationReady={_java(controller.zk_migration_ready)}, {_endpoints(controller.end_points)}, "
            f"{_supported(controller.features)})"
        )
        yield ("cluster", "controllers", str(controller_id)), text


def _topics(metadata: ClusterMetadata) -> Iterator[Leaf]:
    for name, index in metadata.topics.index_by_name.items():
        topic_id = uuid_text(metadata.topics.ids[index])
        for root in (("topics", "byId", topic_id), ("topics", "byName", name)):
            yield (*root, "id"), topic_id
            yield (*root, "name"), name
            for row in metadata.topics.rows_of(index).tolist():
                record = partition_record(metadata, row)
                state = ("RECOVERED", "RECOVERING")[record.leader_recovery_state]
                text = (
                    f"PartitionRegistration(replicas={list(record.replicas)}, directories={_ids(record.directories)}, "
                    f"isr={list(record.isr)}, removingReplicas={list(record.removing_replicas)}, "
                    f"addingReplicas={list(record.adding_replicas)}, "
                    f"elr={list(record.eligible_leader_replicas or ())}, "
                    f"lastKnownElr={list(record.last_known_elr or ())}, leader={record.leader}, "
                    f"leaderRecoveryState={state}, leaderEpoch={record.leader_epoch}, "
                    f"partitionEpoch={record.partition_epoch})"
                )
                yield (*root, str(record.partition_id)), text


def _features(metadata: ClusterMetadata) -> Iterator[Leaf]:
    for name, level in metadata.features.items():
        if name == "metadata.version":
            yield ("features", "metadataVersion"), f"Optional[{_LEVELS[level]}]"
        else:
            yield ("features", f"finalized_{name}"), str(level)


def _configs(metadata: ClusterMetadata) -> Iterator[Leaf]:
    for (kind, name), configs in metadata.configs.items():
        for key, value in configs.items():
            yield ("configs", f"{_TYPES[kind]}:{name}" if name else _TYPES[kind], key), value
    for entity, quotas in metadata.quotas.items():
        if any(name is None for _, name in entity):
            continue
        path = "_".join(f"{_QUOTA_TYPES[kind]}({name})" for kind, name in entity)
        for key, number in quotas.items():
            yield ("clientQuotas", path, key), str(number)


def _access(metadata: ClusterMetadata) -> Iterator[Leaf]:
    for acl_id, acl in metadata.acls.items():
        text = (
            f"StandardAcl[resourceType={_ACL_TYPES[acl.resource_type]}, resourceName={acl.resource_name}, "
            f"patternType={_PATTERNS[acl.pattern_type]}, principal={acl.principal}, host={acl.host}, "
            f"operation={_OPERATIONS[acl.operation]}, permissionType={_PERMISSIONS[acl.permission_type]}]"
        )
        yield ("acls", "byId", uuid_text(acl_id)), text
    for (user, mechanism), credential in metadata.scram.items():
        text = (
            f"ScramCredentialData(salt={credential.salt.hex()}, storedKey={credential.stored_key.hex()}, "
            f"serverKey={credential.server_key.hex()}, iterations={credential.iterations})"
        )
        yield ("scram", _MECHANISMS[mechanism], user), text


def _endpoints(end_points: Iterable[Any]) -> str:
    texts = (
        f"Endpoint(listenerName='{point.name}', securityProtocol={_PROTOCOLS[point.security_protocol]}, "
        f"host='{point.host}', port={point.port})"
        for point in sorted(end_points, key=lambda point: str(point.name))
    )
    return f"listeners=[{', '.join(texts)}]"


def _supported(features: Iterable[records.BrokerFeature | records.ControllerFeature]) -> str:
    ranges = sorted(
        (feature.name, feature.min_supported_version, feature.max_supported_version) for feature in features
    )
    texts = (f"{name}: {low if low == high else f'{low}-{high}'}" for name, low, high in ranges)
    return f"supportedFeatures={{{', '.join(texts)}}}"


def _ids(ids: Iterable[UUID]) -> str:
    return f"[{', '.join(map(uuid_text, ids))}]"


def _java(value: bool) -> str:
    return str(value).lower()
