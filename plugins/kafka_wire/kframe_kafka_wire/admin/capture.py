"""Live clusters at ``kafka://`` URLs, and their capture through their brokers, from Kafka 2.4 to 4.4.

KRaft brokers since 3.7 describe partitions by DescribeTopicPartitions, which has the eligible leader replicas, others
by Metadata. DescribeCluster 2 lists fenced brokers, and DescribeQuorum the voters and the active controller. A client
without the right to read the quorum, settings or reassignments gets a snapshot without them, which says why. Like
Kafka's tools, a capture has objects for each partition until the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, NoReturn

from kframe.plugin import ConfigError, ErrorCode, StoreError
from kframe.plugin.admin import ClusterDescription, DescribedPartition, PartitionReassignment, snapshot_of
from kframe.plugin.cluster import TopicPartition
from kframe.plugin.live import ClusterStatus, Progress, TopicGroups, ignore_progress, listener_addresses
from kframe.plugin.snapshot import CaptureFacts, Snapshot
from kframe_kafka_wire.admin.broker_requests import DESCRIBE_CONFIGS, values_from
from kframe_kafka_wire.admin.client import AdminClient, AdminRequestRefused, described_partition
from kframe_kafka_wire.admin.groups import topic_groups
from kframe_kafka_wire.connections.node import METADATA, bootstrap_addresses
from kframe_kafka_wire.listeners.security import ListenerSecurity, client_security
from kframe_kafka_wire.protocol.errors import error_of
from kframe_kafka_wire.protocol.metadata_log import TOPIC as METADATA_TOPIC
from kframe_kafka_wire.protocol.metadata_log import only_partition

DESCRIBE_QUORUM: Final = 55
DESCRIBE_CLUSTER: Final = 60
DESCRIBE_TOPIC_PARTITIONS: Final = 75
#: The version of DescribeCluster that lists fenced brokers.
_WITH_FENCED: Final = 2
#: Readings of all partitions until two are equal.
PASSES_MAX: Final = 4
CHANGED_NAMES_MAX: Final = 1000
#: Partitions in a response, at most Kafka's ``max.request.partition.size.limit``, and topics in a request for settings.
PAGE_PARTITIONS: Final = 2000
_TOPICS_PER_REQUEST: Final = 200
_TOPIC, _BROKER = 2, 4
#: No node.
_UNKNOWN: Final = -1
#: Kafka's ``DescribeConfigsResponse.ConfigSource``.
_OF_TOPIC, _OF_ALL_BROKERS, _STATIC = 1, 3, 4
#: Settings of brokers that decide elections and the health of partitions.
_ELECTION_KEYS: Final = ("min.insync.replicas", "unclean.leader.election.enable")
#: Errors of partitions whose state is in the response all the same.
_USABLE: Final = {ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.REPLICA_NOT_AVAILABLE}
_REFUSALS: Final = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}


@dataclass(frozen=True, slots=True)
class PartitionReading:
    """One reading: the partitions, and topic ids by name if the brokers know them."""

    partitions: Sequence[DescribedPartition]
    topic_ids: Mapping[str, bytes]


def open_cluster(url: str, config: Mapping[str, str]) -> KafkaCluster:
    """The cluster at ``kafka://HOST:PORT[,HOST:PORT]...``. Raises ConfigError.

    ``config`` has the keys of Kafka's clients.
    """
    return KafkaCluster(url, bootstrap_addresses(url), client_security(config))


class KafkaCluster:
    """Implements ``LiveCluster``, except what needs ZooKeeper, and ``GroupedCluster``."""

    def __init__(self, url: str, addresses: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """Does not connect. Raises ConfigError."""
        self._url = url
        self._addresses = addresses
        self._security = security
        security.credentials()

    def store(self) -> NoReturn:
        """Raises ConfigError: brokers offer no store."""
        raise self._needs_zookeeper()

    def reader(self) -> NoReturn:
        """Raises ConfigError: brokers offer no store."""
        raise self._needs_zookeeper()

    def capture(self, progress: Progress = ignore_progress) -> Snapshot:
        """Read everything that brokers report, write nothing."""
        with closing(AdminClient(self._addresses, self._security)) as client:
            return capture(client, self._url, self._security.protocol, progress)

    def topic_groups(self, topic: str, progress: Progress = ignore_progress) -> TopicGroups:
        """See ``GroupedCluster.topic_groups``."""
        with closing(AdminClient(self._addresses, self._security)) as client:
            return topic_groups(client, topic, progress)

    def status(self, progress: Progress = ignore_progress, *, quick: bool = False) -> ClusterStatus:
        """Read everything that brokers report; see ``LiveCluster.status``. ``quick`` makes no difference."""
        return ClusterStatus.of(self.capture(progress), None, None)

    def audit(self) -> tuple[str, ...]:
        """Nothing: brokers do not report who may change the metadata."""
        return ()

    def broker_addresses(self) -> dict[int, str]:
        """See ``LiveCluster.broker_addresses``: the listener that responds."""
        return listener_addresses(self.capture())

    def depose(self, controller_id: int | None = None) -> NoReturn:
        """Raises ConfigError: clients cannot remove a controller."""
        raise self._needs_zookeeper()

    def _needs_zookeeper(self) -> ConfigError:
        return ConfigError("cluster URL", self._url, "zookeeper://HOST:PORT[/chroot]")


def capture(client: AdminClient, where: str, protocol: str, progress: Progress = ignore_progress) -> Snapshot:
    """A snapshot of the cluster. Raises StoreError, WireError for a response without what was asked for, and
    SnapshotError for contradictory responses.

    Everything is read again while partitions change, a few times at most. ``Snapshot.capture`` names the partitions
    that changed between the last two readings.
    """
    passes, changed, after = 1, [""], read_partitions(client, progress)
    while changed and passes < PASSES_MAX:
        before = after
        description = _describe(client, where, protocol, before)
        after = read_partitions(client, progress)
        passes, changed = passes + 1, list(_changed(before.partitions, after.partitions))
    facts = CaptureFacts(passes, not changed, None, len(changed), tuple(islice(changed, CHANGED_NAMES_MAX)))
    last = replace(description, partitions=after.partitions, topic_ids=after.topic_ids)
    return replace(snapshot_of(last), capture=facts)


def read_partitions(client: AdminClient, progress: Progress = ignore_progress) -> PartitionReading:
    """All partitions by the newest API that the broker has. Raises StoreError."""
    if client.connected().version(DESCRIBE_TOPIC_PARTITIONS) is not None:
        topics: Iterable[Mapping[str, Any]] = _pages(client, progress)
    else:
        topics = client.ask(METADATA, topics=None, allow_auto_topic_creation=False)["topics"]
    partitions: list[DescribedPartition] = []
    topic_ids: dict[str, bytes] = {}
    for topic in topics:
        code = error_of(topic["error_code"])
        if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue  # It was deleted meanwhile.
        if code is not ErrorCode.NONE:
            raise StoreError(f"topic {topic['name']}: found {code.name}, expected a description")
        if "topic_id" in topic:
            topic_ids[topic["name"]] = topic["topic_id"]
        partitions += (_described(topic["name"], partition) for partition in topic["partitions"])
    progress(len(partitions), len(partitions))
    return PartitionReading(partitions, topic_ids)


def _pages(client: AdminClient, progress: Progress) -> Iterator[Mapping[str, Any]]:
    """The topics in all responses to DescribeTopicPartitions. A topic on two pages is yielded twice."""
    cursor: Mapping[str, Any] | None = None
    count = 0
    while True:
        response = client.ask(
            DESCRIBE_TOPIC_PARTITIONS, topics=[], response_partition_limit=PAGE_PARTITIONS, cursor=cursor
        )
        yield from response["topics"]
        count += sum(len(topic["partitions"]) for topic in response["topics"])
        progress(count, count)
        next_cursor = response["next_cursor"]
        if next_cursor is None:
            return
        if cursor is not None and _position(next_cursor) <= _position(cursor):
            raise StoreError(
                f"DescribeTopicPartitions: found cursor {_position(next_cursor)} again, expected a later one"
            )
        cursor = next_cursor


def _position(cursor: Mapping[str, Any]) -> tuple[str, int]:
    return cursor["topic_name"], cursor["partition_index"]


def _described(topic: str, partition: Mapping[str, Any]) -> DescribedPartition:
    code = error_of(partition["error_code"])
    if code not in _USABLE:
        name = f"{topic}-{partition['partition_index']}"
        raise StoreError(f"partition {name}: found {code.name}, expected a leader with this listener or none")
    return described_partition(topic, partition)


def _describe(client: AdminClient, where: str, protocol: str, partitions: PartitionReading) -> ClusterDescription:
    """Everything but the partitions."""
    absent: dict[str, str] = {}
    cluster = _read_cluster(client)
    reassignments = _read_reassignments(client, absent)
    names = list(dict.fromkeys(partition.topic for partition in partitions.partitions))
    configs = _read_topic_configs(client, names, absent)
    defaults = _read_broker_configs(client, absent)
    node = client.connected()
    has_elr = node.version(DESCRIBE_TOPIC_PARTITIONS) is not None
    if node.is_kraft and not has_elr:
        absent["partitions.elr"] = "these brokers do not describe eligible leader replicas"
    leader_id, voters = _read_quorum(client, absent) if node.is_kraft else (cluster.controller_id, None)
    return replace(
        cluster,
        where=where,
        protocol=protocol,
        controller_id=leader_id,
        voters=voters,
        features=node.features if node.is_kraft else None,
        has_elr=has_elr,
        fenced=cluster.fenced if node.is_kraft else (),
        reassignments=reassignments,
        configs=configs,
        broker_defaults=defaults,
        absent=absent,
    )


def _read_cluster(client: AdminClient) -> ClusterDescription:
    """The cluster id, the controller and the brokers."""
    version = client.connected().version(DESCRIBE_CLUSTER)
    if version is not None:
        node, response = client.ask_node(DESCRIBE_CLUSTER, include_fenced_brokers=True)
        key = "broker_id"
    else:
        node, response = client.ask_node(METADATA, topics=[], allow_auto_topic_creation=False)
        key = "node_id"
    brokers = {broker[key]: (broker["host"], broker["port"], broker["rack"]) for broker in response["brokers"]}
    lists_fenced = version is not None and version >= _WITH_FENCED
    fenced = [broker[key] for broker in response["brokers"] if broker["is_fenced"]] if lists_fenced else None
    return ClusterDescription(
        "", response["cluster_id"], response["controller_id"], brokers, (), fenced=fenced, controllers=node.controllers
    )


def _read_quorum(client: AdminClient, absent: dict[str, str]) -> tuple[int, list[int] | None]:
    """The active controller, or -1, and the voters. Brokers pass the request on to the active controller."""
    if client.connected().version(DESCRIBE_QUORUM) is None:
        return _UNKNOWN, None
    request = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]
    try:
        response = client.ask(DESCRIBE_QUORUM, topics=request)
    except AdminRequestRefused as refusal:
        if refusal.code not in _REFUSALS:
            raise
        absent["cluster.controller_id"] = f"DescribeQuorum is refused ({refusal.code.name})"
        return _UNKNOWN, None
    quorum = only_partition("DescribeQuorum", response["topics"], "partition_index")
    code = error_of(quorum["error_code"])
    if code is not ErrorCode.NONE:
        absent["cluster.controller_id"] = f"DescribeQuorum has the error {code.name}"
        return _UNKNOWN, None
    return quorum["leader_id"], [voter["replica_id"] for voter in quorum["current_voters"]]


def _read_reassignments(
    client: AdminClient, absent: dict[str, str]
) -> Mapping[TopicPartition, PartitionReassignment] | None:
    try:
        return client.reassignments()
    except AdminRequestRefused as refusal:
        if refusal.code not in _REFUSALS:
            raise
        note = f"ListPartitionReassignments is refused ({refusal.code.name})"
        absent |= {"partitions.adding_replicas": note, "partitions.removing_replicas": note}
        return None


def _read_topic_configs(
    client: AdminClient, names: Sequence[str], absent: dict[str, str]
) -> dict[str, Mapping[str, str]] | None:
    """The own settings of topics. None if those of any topic are refused."""
    configs: dict[str, Mapping[str, str]] = {}
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        resources = [_resource(_TOPIC, name, None) for name in names[start : start + _TOPICS_PER_REQUEST]]
        for result in client.ask(DESCRIBE_CONFIGS, resources=resources)["results"]:
            code, name = error_of(result["error_code"]), result["resource_name"]
            if code in _REFUSALS:
                absent["topics.configs"] = f"DescribeConfigs of topic {name} is refused ({code.name})"
                return None
            if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise StoreError(f"settings of topic {name}: found {code.name}, expected its settings")
            configs[name] = values_from(result, _OF_TOPIC)
    return configs


def _read_broker_configs(client: AdminClient, absent: dict[str, str]) -> dict[str, str] | None:
    """The cluster-wide settings of brokers, and those of _ELECTION_KEYS that the connected broker has in its file."""
    node_id = client.connected().node_id
    resources = [_resource(_BROKER, "", None), _resource(_BROKER, str(node_id), _ELECTION_KEYS)]
    results = {
        result["resource_name"]: result for result in client.ask(DESCRIBE_CONFIGS, resources=resources)["results"]
    }
    values: list[dict[str, str]] = []
    for name, source in (("", _OF_ALL_BROKERS), (str(node_id), _STATIC)):
        code = error_of(results[name]["error_code"]) if name in results else ErrorCode.UNKNOWN_SERVER_ERROR
        if code is not ErrorCode.NONE:
            resource = f"broker {name}" if name else "all brokers"
            absent["cluster.broker_default_configs"] = f"DescribeConfigs of {resource} is refused ({code.name})"
            return None
        values.append(values_from(results[name], source))
    defaults, static = values
    static = {name: value for name, value in static.items() if name not in defaults}
    if static:
        text = ", ".join(f"{name}={value}" for name, value in sorted(static.items()))
        absent["cluster.broker_default_configs"] = f"{text} in the configuration of broker {node_id}"
    return defaults | static


def _resource(kind: int, name: str, keys: Sequence[str] | None) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": keys}


def _changed(before: Sequence[DescribedPartition], after: Sequence[DescribedPartition]) -> Iterator[str]:
    """``topic-partition`` of each partition that differs."""
    remaining = {(partition.topic, partition.partition): partition for partition in before}
    for partition in after:
        if remaining.pop((partition.topic, partition.partition), None) != partition:
            yield f"{partition.topic}-{partition.partition}"
    yield from (f"{topic}-{partition}" for topic, partition in remaining)
