"""An admin client for any Kafka cluster, with one connection and one request at a time.

It learns the controller from a bootstrap broker by Metadata, and again after each NOT_CONTROLLER.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kframe.plugin import ConfigError, ErrorCode, StoreError
from kframe.plugin.admin import ClusterDescription, Described, Moving, snapshot_of
from kframe.plugin.cluster import ElectionType, Targets, TopicPartition
from kframe.plugin.columns import Ragged
from kframe.plugin.snapshot import Snapshot
from kframe_kafka_wire.answers import PermanentFailure, WireError, error_of
from kframe_kafka_wire.codec import decode_response, encode_request
from kframe_kafka_wire.connection import BrokerConnection, Target
from kframe_kafka_wire.security import ListenerSecurity, security_of
from kframe_kafka_wire.shapes import CodecError

CLIENT_ID: Final = "kframe"
#: API keys and the versions used, which brokers since 2.4 have.
METADATA: Final = (3, 9)
ELECT: Final = (43, 2)
ALTER: Final = (45, 0)
LIST: Final = (46, 0)
#: Time limits of a request and of the search for a controller, and the pause between two attempts.
REQUEST_MS: Final = 30_000
SEARCH_S: Final = 60.0
PAUSE_S: Final = 0.2
REPLY_BYTES_MAX: Final = 512 * 2**20
_LISTENER: Final = "CLIENT"
_BROKEN: Final = (OSError, WireError, CodecError)


class AdminClient:
    """Implements ``kframe.snapshot.administration.Administration``."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """``bootstrap`` has hosts and ports of some brokers. Does not connect yet. Raises ConfigError."""
        self._bootstrap = tuple(bootstrap)
        self._security = security
        self._credentials = security.credentials()
        self._connection: BrokerConnection | None = None
        self._correlation = 0

    def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def capture(self) -> Snapshot:
        """See ``Administration.capture``."""
        response = self._ask(METADATA, topics=None, allow_auto_topic_creation=False)
        brokers = {
            broker["node_id"]: (broker["host"], broker["port"], broker["rack"]) for broker in response["brokers"]
        }
        return snapshot_of(
            ClusterDescription(
                ",".join(f"{host}:{port}" for host, port in self._bootstrap),
                response["cluster_id"], response["controller_id"], brokers, tuple(_described(response["topics"])),
                self.reassignments(),
            )
        )  # fmt: skip

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        """See ``Administration.reassign``."""
        topics: dict[str, list[dict[str, Any]]] = {}
        names = [(targets.names[targets.topic[i]], int(targets.partition[i])) for i in range(len(targets))]
        for index, (topic, partition) in enumerate(names):
            replicas = None if targets.cancel[index] else _list(targets.replicas, index)
            topics.setdefault(topic, []).append({"partition_index": partition, "replicas": replicas})
        requested = [{"name": name, "partitions": parts} for name, parts in topics.items()]
        response = self._ask(ALTER, timeout=REQUEST_MS, topics=requested)
        codes = {
            (topic["name"], partition["partition_index"]): error_of(partition["error_code"])
            for topic in response["responses"]
            for partition in topic["partitions"]
        }
        return tuple(codes.get(name, ErrorCode.UNKNOWN_SERVER_ERROR) for name in names)

    def reassignments(self) -> dict[TopicPartition, Moving]:
        """See ``Administration.reassignments``."""
        response = self._ask(LIST, timeout=REQUEST_MS, topics=None)
        return {
            (topic["name"], partition["partition_index"]): Moving(
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
        response = self._ask(ELECT, election_type=int(election), topic_partitions=requested, timeout=REQUEST_MS)
        return {
            (topic["topic"], result["partition_id"]): error_of(result["error_code"])
            for topic in response["replica_election_results"]
            for result in topic["partition_result"]
        }

    def _ask(self, api: tuple[int, int], **fields: Any) -> dict[str, Any]:
        """Send a request to the controller. After a connection failure it is repeated, because all requests are
        idempotent.

        Raises StoreError.
        """
        end_s, problem = time.monotonic() + SEARCH_S, "no broker answers"
        while time.monotonic() < end_s:
            try:
                connection = self._connection or self._to_controller()
                response = self._exchange(connection, api, fields)
            except _BROKEN as error:
                problem = str(error) or type(error).__name__
                if isinstance(error, PermanentFailure):
                    raise StoreError(f"no controller can be reached: {problem}") from error
            else:
                code = top_level_error(response)
                if code is ErrorCode.NONE:
                    return response
                if code is not ErrorCode.NOT_CONTROLLER:
                    raise StoreError(
                        f"{code.name}: {response.get('error_message') or 'the controller gives no reason'}"
                    )
                problem = "the controller has changed"
            self.close()
            time.sleep(PAUSE_S)
        raise StoreError(f"no controller can be reached: {problem}")

    def _to_controller(self) -> BrokerConnection:
        """A connection to the controller that the first responding bootstrap broker names.

        Raises Refused if no broker responds and one of them refuses permanently.
        """
        failure: Exception = WireError("no bootstrap broker was given")
        for host, port in self._bootstrap:
            try:
                bootstrap = self._open(host, port)
                try:
                    response = self._exchange(bootstrap, METADATA, {"topics": [], "allow_auto_topic_creation": False})
                finally:
                    bootstrap.close()
            except _BROKEN as error:
                failure = failure if isinstance(failure, PermanentFailure) else error
                continue
            addresses = {broker["node_id"]: (broker["host"], broker["port"]) for broker in response["brokers"]}
            if response["controller_id"] in addresses:
                self._connection = self._open(*addresses[response["controller_id"]])
                return self._connection
            failure = WireError(f"{host}:{port} knows no controller")
        raise failure

    def _open(self, host: str, port: int) -> BrokerConnection:
        connection = BrokerConnection(Target(host, port, self._security.tls, self._credentials, CLIENT_ID))
        try:
            connection.open(REQUEST_MS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _exchange(
        self, connection: BrokerConnection, api: tuple[int, int], fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        self._correlation += 1
        request = encode_request(*api, self._correlation, CLIENT_ID, fields)
        reply = connection.exchange([request], REPLY_BYTES_MAX, REQUEST_MS)
        correlation, response = decode_response(*api, reply)
        if correlation != self._correlation:
            raise WireError(f"an answer to request {correlation}, where {self._correlation} was asked")
        return response


def open_admin(url: str, config: Mapping[str, str]) -> AdminClient:
    """The admin client for ``kafka://HOST:PORT[,HOST:PORT]...``. Raises ConfigError.

    ``config`` has the keys of Kafka's clients.
    """
    addresses = [_host_port(address.strip()) for address in url.removeprefix("kafka:").removeprefix("//").split(",")]
    return AdminClient(addresses, client_security(config))


def client_security(config: Mapping[str, str]) -> ListenerSecurity:
    """Security settings by the keys of Kafka's clients. Raises ConfigError.

    The keys are ``security.protocol``, ``ssl.*``, ``sasl.mechanism`` and ``sasl.jaas.config``.
    """
    protocol, mechanism = config.get("security.protocol", "PLAINTEXT").strip(), config.get("sasl.mechanism", "").strip()
    given = {key: value for key, value in config.items() if key.startswith("ssl.")}
    given["listener.security.protocol.map"] = f"{_LISTENER}:{protocol}"
    given["sasl.mechanism.inter.broker.protocol"] = mechanism
    if "sasl.jaas.config" in config:
        given[f"listener.name.{_LISTENER.lower()}.{mechanism.lower()}.sasl.jaas.config"] = config["sasl.jaas.config"]
    return security_of(given, _LISTENER)


def top_level_error(response: Mapping[str, Any]) -> ErrorCode:
    """The top-level error of a response."""
    return ErrorCode.NOT_CONTROLLER if _all_refused(response) else error_of(response.get("error_code", 0))


def _all_refused(response: Mapping[str, Any]) -> bool:
    """Whether every partition has NOT_CONTROLLER. Then the request is sent again, to the current controller."""
    results = [(topic, "partition_result") for topic in response.get("replica_election_results") or ()]
    results += [(topic, "partitions") for topic in response.get("responses") or ()]
    codes = {each["error_code"] for topic, name in results for each in topic[name]}
    return codes == {ErrorCode.NOT_CONTROLLER}


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise ConfigError("--bootstrap-server", repr(address), "HOST:PORT[,HOST:PORT]...")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _described(topics: Iterable[Mapping[str, Any]]) -> Iterator[Described]:
    for topic in topics:
        for partition in topic["partitions"]:
            yield Described(
                topic["name"], partition["partition_index"], partition["leader_id"], partition["leader_epoch"],
                partition["replica_nodes"], partition["isr_nodes"],
            )  # fmt: skip


def _list(lists: Ragged, position: int) -> list[int]:
    values: list[int] = lists[position].tolist()
    return values
