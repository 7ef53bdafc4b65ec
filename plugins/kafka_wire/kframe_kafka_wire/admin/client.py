"""An admin client for any Kafka cluster, with one connection and one request at a time.

It learns the controller from a bootstrap broker by Metadata, and again after each NOT_CONTROLLER.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from kframe.plugin import ErrorCode, StoreError
from kframe.plugin.admin import (
    ClusterDescription,
    ConfigResource,
    DescribedPartition,
    LogDirectory,
    PartitionReassignment,
    snapshot_of,
)
from kframe.plugin.cluster import ElectionType, Targets, TopicPartition
from kframe.plugin.columns import Ragged
from kframe.plugin.snapshot import Snapshot
from kframe_kafka_wire.admin.broker_requests import (
    ALTER_CONFIGS,
    ALTER_LOG_DIRS,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    BrokerConnections,
    BrokerUnreachable,
    addresses_of,
    alter_request,
    codes_of,
    configs_of,
    describe_request,
    directories_of,
    move_codes,
    move_request,
)
from kframe_kafka_wire.connections.node import (
    CONNECTION_ERRORS,
    METADATA,
    REQUEST_TIMEOUT_MS,
    Bootstrap,
    NoBootstrapServer,
    NodeConnection,
    bootstrap_addresses,
)
from kframe_kafka_wire.listeners.security import ListenerSecurity, client_security
from kframe_kafka_wire.protocol.errors import PermanentFailure, WireError, error_of

#: API keys.
ELECT: Final = 43
ALTER: Final = 45
LIST: Final = 46
#: Time limit of the search for a controller, and the pause between two attempts.
CONTROLLER_TIMEOUT_S: Final = 60.0
PAUSE_S: Final = 0.2
_Result = TypeVar("_Result")
_Value = TypeVar("_Value")
_Send: TypeAlias = Callable[[int, Mapping[str, Any]], dict[str, Any]]


class AdminRequestRefused(StoreError):
    """The cluster refuses a request with an error code."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code


class AdminClient:
    """Implements ``kframe.ports.administration.Administration``."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """``bootstrap`` has hosts and ports of some brokers. Does not connect yet. Raises ConfigError."""
        self._bootstrap = Bootstrap(bootstrap, security)
        self._node: NodeConnection | None = None
        self._has_connected = False
        self._brokers = BrokerConnections(self._bootstrap)

    def close(self) -> None:
        """Disconnect."""
        self._brokers.close()
        self._disconnect()

    def _disconnect(self) -> None:
        node, self._node = self._node, None
        if node is not None:
            node.close()

    def capture(self) -> Snapshot:
        """See ``Administration.capture``."""
        return snapshot_of(self.describe())

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        """See ``Administration.reassign``."""
        topics: dict[str, list[dict[str, Any]]] = {}
        names = [(targets.names[targets.topic[i]], int(targets.partition[i])) for i in range(len(targets))]
        for index, (topic, partition) in enumerate(names):
            replicas = None if targets.cancel[index] else _list(targets.replicas, index)
            topics.setdefault(topic, []).append({"partition_index": partition, "replicas": replicas})
        requested = [{"name": name, "partitions": by_broker} for name, by_broker in topics.items()]
        response = self.ask(ALTER, timeout=REQUEST_TIMEOUT_MS, topics=requested)
        codes = {
            (topic["name"], partition["partition_index"]): error_of(partition["error_code"])
            for topic in response["responses"]
            for partition in topic["partitions"]
        }
        return tuple(codes.get(name, ErrorCode.UNKNOWN_SERVER_ERROR) for name in names)

    def reassignments(self) -> dict[TopicPartition, PartitionReassignment]:
        """See ``Administration.reassignments``."""
        response = self.ask(LIST, timeout=REQUEST_TIMEOUT_MS, topics=None)
        return {
            (topic["name"], partition["partition_index"]): PartitionReassignment(
                tuple(partition["replicas"]), tuple(partition["adding_replicas"]), tuple(partition["removing_replicas"])
            )
            for topic in response["topics"]
            for partition in topic["partitions"]
        }

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        """See ``Administration.elect``."""
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions or ():
            topics.setdefault(topic, []).append(partition)
        requested = (
            None if partitions is None else [{"topic": name, "partitions": numbers} for name, numbers in topics.items()]
        )
        response = self.ask(ELECT, election_type=int(election), topic_partitions=requested, timeout=REQUEST_TIMEOUT_MS)
        return {
            (topic["topic"], result["partition_id"]): error_of(result["error_code"])
            for topic in response["replica_election_results"]
            for result in topic["partition_result"]
        }

    def describe(self) -> ClusterDescription:
        """See ``Administration.describe``. Reassignments are read first, so that none looks complete too early."""
        reassignments = self.reassignments()
        node, response = self.ask_node(METADATA, topics=None, allow_auto_topic_creation=False)
        brokers = {
            broker["node_id"]: (broker["host"], broker["port"], broker["rack"]) for broker in response["brokers"]
        }
        self._brokers.addresses = addresses_of(response)
        partitions = tuple(
            described_partition(topic["name"], each) for topic in response["topics"] for each in topic["partitions"]
        )
        return ClusterDescription(
            self._bootstrap.names,
            response["cluster_id"],
            response["controller_id"],
            brokers,
            partitions,
            reassignments,
            controllers=node.controllers,
            features=node.features if node.is_kraft else None,
            fenced=None if node.is_kraft else (),
        )

    def read_configs(self, resources: Mapping[ConfigResource, Sequence[str]]) -> dict[ConfigResource, dict[str, str]]:
        """See ``Administration.read_configs``."""
        return {
            resource: configs
            for ask, part in self._routes(resources)
            for resource, configs in configs_of(ask(DESCRIBE_CONFIGS, describe_request(part))).items()
        }

    def change_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> dict[ConfigResource, ErrorCode]:
        """See ``Administration.change_configs``."""
        codes: dict[ConfigResource, ErrorCode] = {}
        for ask, part in self._routes(changes):
            try:
                codes |= codes_of(ask(ALTER_CONFIGS, alter_request(part)))
            except BrokerUnreachable:
                codes |= dict.fromkeys(part, ErrorCode.BROKER_NOT_AVAILABLE)
        return codes

    def log_directories(self, broker_ids: Collection[int]) -> dict[int, tuple[LogDirectory, ...]]:
        """See ``Administration.log_directories``."""
        listed: dict[int, tuple[LogDirectory, ...]] = {}
        for broker_id in broker_ids:
            try:
                listed[broker_id] = directories_of(self.ask_broker(broker_id, DESCRIBE_LOG_DIRS, {"topics": None}))
            except StoreError:
                continue
        return listed

    def alter_log_directories(
        self, paths: Mapping[int, Mapping[TopicPartition, str]]
    ) -> dict[int, dict[TopicPartition, ErrorCode]]:
        """See ``Administration.alter_log_directories``."""
        codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
        for broker_id, by_partition in paths.items():
            try:
                response = self.ask_broker(broker_id, ALTER_LOG_DIRS, move_request(by_partition))
                codes[broker_id] = move_codes(response)
            except BrokerUnreachable:
                codes[broker_id] = dict.fromkeys(by_partition, ErrorCode.BROKER_NOT_AVAILABLE)
        return codes

    def _routes(
        self, resources: Mapping[ConfigResource, _Value]
    ) -> Iterator[tuple[_Send, dict[ConfigResource, _Value]]]:
        """Where to send what: resources of topics to the controller, those of a broker to the broker."""
        by_broker: dict[int | None, dict[ConfigResource, _Value]] = {}
        for resource, value in resources.items():
            by_broker.setdefault(resource.broker_id, {})[resource] = value
        for broker_id, part in by_broker.items():
            if broker_id is None:
                yield lambda api_key, fields: self.ask(api_key, **fields), part
            else:
                yield partial(self.ask_broker, broker_id), part

    def ask_broker(self, broker_id: int, api_key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The response of a broker. The address of one that is not known yet is looked up first."""
        if broker_id not in self._brokers.addresses:
            response = self.ask(METADATA, topics=[], allow_auto_topic_creation=False)
            self._brokers.addresses = addresses_of(response)
        return self._brokers.ask(broker_id, api_key, fields)

    def ask(self, api_key: int, **fields: Any) -> dict[str, Any]:
        """The controller's response to a request in the newest version that both know. Raises as ``connected``."""
        return self.ask_node(api_key, **fields)[1]

    def ask_node(self, api_key: int, **fields: Any) -> tuple[NodeConnection, dict[str, Any]]:
        """The node that responds as the controller, and its response. Otherwise as ``ask``."""
        return self._with_retries(lambda node: (node, _checked(node.ask(api_key, fields))))

    def connected(self) -> NodeConnection:
        """The connection to the controller.

        Raises StoreError; NoBootstrapServer within five seconds if no server was reached before.
        """
        return self._with_retries(lambda node: node)

    def _with_retries(self, action: Callable[[NodeConnection], _Result]) -> _Result:
        """Connect and ``use`` the connection; after a failure again, because all requests are idempotent."""
        end_s, problem = time.monotonic() + CONTROLLER_TIMEOUT_S, "no broker answers"
        while time.monotonic() < end_s:
            try:
                if self._node is None:
                    self._node = self._bootstrap.to_controller()
                    self._has_connected = True
                return action(self._node)
            except NoBootstrapServer as error:
                if not self._has_connected:
                    raise
                problem = str(error)
            except CONNECTION_ERRORS as error:
                problem = str(error) or type(error).__name__
                if isinstance(error, PermanentFailure):
                    raise StoreError(f"no controller can be reached: {problem}") from error
            self._disconnect()
            time.sleep(PAUSE_S)
        raise StoreError(f"no controller can be reached: {problem}")


def open_admin(url: str, config: Mapping[str, str]) -> AdminClient:
    """The admin client for ``kafka://HOST:PORT[,HOST:PORT]...``. Raises ConfigError.

    ``config`` has the keys of Kafka's clients.
    """
    return AdminClient(bootstrap_addresses(url), client_security(config))


def _checked(response: dict[str, Any]) -> dict[str, Any]:
    code = top_level_error(response)
    if code is ErrorCode.NOT_CONTROLLER:
        raise WireError("the controller has changed")
    if code is not ErrorCode.NONE:
        raise AdminRequestRefused(code, response.get("error_message") or "the controller gives no reason")
    return response


def top_level_error(response: Mapping[str, Any]) -> ErrorCode:
    """The top-level error of a response."""
    return ErrorCode.NOT_CONTROLLER if _all_refused(response) else error_of(response.get("error_code", 0))


def _all_refused(response: Mapping[str, Any]) -> bool:
    """Whether every partition or resource has NOT_CONTROLLER. Then the request is sent again, to the current
    controller."""
    results = [(topic, "partition_result") for topic in response.get("replica_election_results") or ()]
    results += [(topic, "partitions") for topic in response.get("responses") or ()]
    codes = {each["error_code"] for topic, name in results for each in topic.get(name, (topic,))}
    return codes == {ErrorCode.NOT_CONTROLLER}


def described_partition(topic: str, partition: Mapping[str, Any]) -> DescribedPartition:
    """A partition in a response to Metadata or DescribeTopicPartitions."""
    return DescribedPartition(
        topic,
        partition["partition_index"],
        partition["leader_id"],
        partition["leader_epoch"],
        partition["replica_nodes"],
        partition["isr_nodes"],
        partition.get("eligible_leader_replicas") or (),
        partition.get("last_known_elr") or (),
    )


def _list(lists: Ragged, position: int) -> list[int]:
    values: list[int] = lists[position].tolist()
    return values
