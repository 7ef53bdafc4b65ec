"""The content of a batch, request by request, built from Python objects and independent of the columnar encoders.

Contents are dicts under the field names of Kafka's message definitions, with the fields of all versions. ``of_version``
removes fields that a version lacks. It uses kio, whose classes are generated from those definitions.
"""

from __future__ import annotations

import dataclasses
import io
import uuid
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any, TypeAlias, get_args, get_type_hints

from kio.serial import entity_reader, entity_writer

from kframe.model.cluster import ClusterState, PartitionView
from kframe.model.requests import ControlRequests
from tests.wire.cases import LISTENER

Content: TypeAlias = dict[str, Any]

PROTOCOLS = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
#: kio's module of each request, and its newest version.
APIS = {
    "LeaderAndIsr": ("leader_and_isr", 7),
    "UpdateMetadata": ("update_metadata", 8),
    "StopReplica": ("stop_replica", 4),
}
API_KEYS = {"LeaderAndIsr": 4, "StopReplica": 5, "UpdateMetadata": 6}
EVERY_VERSION = [(api, version) for api, (_, newest) in APIS.items() for version in range(newest + 1)]


def contents(cluster: ClusterState, requests: ControlRequests, api: str, version: int) -> list[tuple[int, Content]]:
    """Return (broker index, content) of each request of kind ``api``, without splits."""
    functions = {"LeaderAndIsr": _leader_and_isr, "UpdateMetadata": _update_metadata, "StopReplica": _stop_replica}
    schema = kio_class(api, version)
    return [(broker, of_version(schema, content)) for broker, content in functions[api](cluster, requests, version)]


def _header(cluster: ClusterState, requests: ControlRequests, broker: int) -> Content:
    return {
        "controllerId": requests.controller_id,
        "isKRaftController": False,
        "controllerEpoch": requests.controller_epoch,
        "brokerEpoch": int(cluster.brokers.broker_epoch[broker]),
        "type": 0,
    }


def _grouped(cluster: ClusterState, states: list[Content]) -> list[Content]:
    groups = groupby(states, key=lambda state: state["topicName"])
    return [
        {"topicName": name, "name": name, "topicId": _topic_id(cluster, name), "partitionStates": list(group)}
        for name, group in groups
    ]


def _topic_id(cluster: ClusterState, name: str) -> str:
    topic = cluster.topics.find(name)
    return urlsafe_b64encode(cluster.topics.ids[topic].tobytes()).decode().rstrip("=")


def _state(view: PartitionView, leader: int) -> Content:
    return {
        "topicName": view.topic,
        "partitionIndex": view.partition,
        "controllerEpoch": view.controller_epoch,
        "leader": leader,
        "leaderEpoch": view.leader_epoch,
        "isr": list(view.isr),
        "partitionEpoch": view.partition_epoch,
        "zkVersion": view.partition_epoch,
        "replicas": list(view.replicas),
        "addingReplicas": list(view.adding_replicas),
        "removingReplicas": list(view.removing_replicas),
        "leaderRecoveryState": int(view.recovery),
    }


def _leader(cluster: ClusterState, row: int) -> int:
    leader = int(cluster.partitions.leader[row])
    return -1 if leader < 0 else int(cluster.brokers.ids[leader])


def _leader_and_isr(cluster: ClusterState, requests: ControlRequests, _: int) -> Iterator[tuple[int, Content]]:
    batch = requests.leader_and_isr
    for broker, part in batch.slices():
        rows = batch.rows[part].tolist()
        states = [
            {**_state(cluster.view(row), _leader(cluster, row)), "isNew": bool(new)}
            for row, new in zip(rows, requests.is_new[part], strict=True)
        ]
        leaders = {state["leader"] for state in states} & set(cluster.brokers.registered_ids())
        if states:
            yield (
                broker,
                _header(cluster, requests, broker)
                | {
                    "ungroupedPartitionStates": states,
                    "topicStates": _grouped(cluster, states),
                    "liveLeaders": [_live_leader(cluster, leader) for leader in sorted(leaders)],
                },
            )


def _live_leader(cluster: ClusterState, broker_id: int) -> Content:
    endpoint = next(endpoint for endpoint in _endpoints(cluster, broker_id) if endpoint["listener"] == LISTENER)
    return {"brokerId": broker_id, "hostName": endpoint["host"], "port": endpoint["port"]}


def _endpoints(cluster: ClusterState, broker_id: int) -> list[Content]:
    registration = cluster.brokers.registrations[cluster.brokers.find(broker_id) or 0]
    assert registration is not None
    return [
        {
            "port": endpoint.port,
            "host": endpoint.host,
            "listener": endpoint.listener,
            "securityProtocol": PROTOCOLS.index(endpoint.security_protocol),
        }
        for endpoint in registration.endpoints
    ]


def _update_metadata(cluster: ClusterState, requests: ControlRequests, _: int) -> Iterator[tuple[int, Content]]:
    states = [_metadata(cluster, row) for row in requests.metadata_rows.tolist()]
    shared = {
        "ungroupedPartitionStates": states,
        "topicStates": _grouped(cluster, states),
        "liveBrokers": [_live_broker(cluster, broker_id) for broker_id in cluster.brokers.registered_ids()],
    }
    for broker in requests.metadata_brokers.tolist():
        yield broker, _header(cluster, requests, broker) | shared


def _metadata(cluster: ClusterState, row: int) -> Content:
    view, brokers, p = cluster.view(row), cluster.brokers, cluster.partitions
    start = int(p.slot_start[row])
    down = [
        broker_id
        for slot, broker_id in enumerate(view.replicas, start)
        if broker_id not in brokers.ids_of(brokers.live.nonzero()[0]) or p.replica_status[slot] & 4
    ]
    state = _state(view, _leader(cluster, row)) | {"offlineReplicas": down}
    topic = cluster.topics.find(view.topic)
    return state | {"leader": -2, "leaderEpoch": 0, "zkVersion": 0} if cluster.topics.deleting[topic] else state


def _live_broker(cluster: ClusterState, broker_id: int) -> Content:
    endpoints = _endpoints(cluster, broker_id)
    registration = cluster.brokers.registrations[cluster.brokers.find(broker_id) or 0]
    assert registration is not None
    plaintext = next(endpoint for endpoint in endpoints if endpoint["listener"] == "PLAINTEXT")
    return {
        "id": broker_id,
        "v0Host": plaintext["host"],
        "v0Port": plaintext["port"],
        "endpoints": endpoints,
        "rack": registration.rack,
    }


def _stop_replica(cluster: ClusterState, requests: ControlRequests, version: int) -> Iterator[tuple[int, Content]]:
    batch = requests.stop_replica
    for broker, part in batch.slices():
        epochs, deletes = requests.stop_leader_epoch[part].tolist(), requests.stop_delete[part].tolist()
        columns = zip(batch.rows[part].tolist(), epochs, deletes, strict=True)
        stops = [
            {
                "topicName": cluster.view(row).topic,
                "partitionIndex": cluster.view(row).partition,
                "leaderEpoch": leader_epoch,
                "deletePartition": bool(delete),
            }
            for row, leader_epoch, delete in columns
        ]
        for flag in (True, False) if version < 3 else (None,):
            chosen = [stop for stop in stops if flag in (None, stop["deletePartition"])]
            if chosen:
                yield (
                    broker,
                    _header(cluster, requests, broker)
                    | {
                        "deletePartitions": flag,
                        "ungroupedPartitions": chosen,
                        "topics": [
                            group | {"partitionIndexes": [stop["partitionIndex"] for stop in group["partitionStates"]]}
                            for group in _grouped(cluster, chosen)
                        ],
                        "topicStates": _grouped(cluster, chosen),
                    },
                )


@cache
def kio_class(api: str, version: int) -> Any:
    """Return kio's class of a request."""
    return getattr(import_module(f"kio.schema.{APIS[api][0]}.v{version}.request"), f"{api}Request")


@cache
def kio_fields(schema: Any) -> list[tuple[str, str, Any]]:
    """Return each field of a kio class: its name in kio, its name in Kafka, and the class of its elements, if any."""
    hints = get_type_hints(schema)
    named = ((field.name, get_args(hints[field.name])[:1]) for field in dataclasses.fields(schema))
    return [
        (name, kafka_name(name), inner[0] if inner and dataclasses.is_dataclass(inner[0]) else None)
        for name, inner in named
    ]


def kafka_name(kio_name: str) -> str:
    """Return Kafka's name of a kio field."""
    first, *rest = kio_name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def of_version(schema: Any, content: Content) -> Content:
    """Return the fields of ``content`` that ``schema``, a kio class, has."""
    return {
        name: [of_version(nested, nested_content) for nested_content in content[name]] if nested else content[name]
        for _, name, nested in kio_fields(schema)
    }


def kio_entity(schema: Any, content: Content) -> Any:
    """Return ``content`` as an instance of ``schema``."""
    return schema(
        **{kio_name: _kio_value(name, nested, content[name]) for kio_name, name, nested in kio_fields(schema)}
    )


def _kio_value(name: str, nested: Any, value: Any) -> Any:
    if name == "topicId":
        raw = urlsafe_b64decode(value + "==")
        return uuid.UUID(bytes=raw) if any(raw) else None
    if nested:
        return tuple(kio_entity(nested, element) for element in value)
    return tuple(value) if isinstance(value, list) else value


@cache
def _writer(schema: Any) -> Any:
    return entity_writer(schema)


@cache
def _reader(schema: Any) -> Any:
    return entity_reader(schema)


def kio_encode(entity: Any) -> bytes:
    """Return the bytes of an entity as kio writes them."""
    buffer = io.BytesIO()
    _writer(entity.__class__)(buffer, entity)
    return buffer.getvalue()


def kio_decode(schema: Any, body: bytes) -> Any:
    """Return the entity that kio reads from the whole of ``body``."""
    entity, size = _reader(schema)(body, 0)
    assert size == len(body)
    return entity
