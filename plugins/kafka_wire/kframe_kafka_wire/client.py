"""An admin client of a Kafka cluster, whatever controls it: one connection at a time, requests one after another.

It asks a bootstrap broker who is controller, and asks that; when it is not any more, it asks again who is.
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
from kframe_kafka_wire.answers import Refused, WireError, error_of
from kframe_kafka_wire.codec import decode_response, encode_request
from kframe_kafka_wire.connection import Connection, Target
from kframe_kafka_wire.security import ListenerSecurity, security_of
from kframe_kafka_wire.shapes import CodecError

CLIENT_ID: Final = "kframe"
#: APIs by key, with the version that is asked for: brokers since 2.4 have them.
METADATA: Final = (3, 9)
ELECT: Final = (43, 2)
ALTER: Final = (45, 0)
LIST: Final = (46, 0)
#: How long one request may take, how long a controller is looked for, and how long to wait between two looks.
REQUEST_MS: Final = 30_000
LOOKED_FOR_S: Final = 60.0
AGAIN_S: Final = 0.2
REPLY_BYTES_MAX: Final = 512 * 2**20
_LISTENER: Final = "CLIENT"
_BROKEN: Final = (OSError, WireError, CodecError)


class AdminClient:
    """Implements ``kframe.snapshot.administration.Administration``."""

    def __init__(self, bootstrap: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """Nothing is connected yet; ``bootstrap`` are hosts and ports of some brokers. Raises ConfigError."""
        self._bootstrap = tuple(bootstrap)
        self._security = security
        self._credentials = security.credentials()
        self._connection: Connection | None = None
        self._correlation = 0

    def close(self) -> None:
        """Disconnect."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def capture(self) -> Snapshot:
        """See ``Administration.capture``."""
        told = self._ask(METADATA, topics=None, allow_auto_topic_creation=False)
        brokers = {one["node_id"]: (one["host"], one["port"], one["rack"]) for one in told["brokers"]}
        return snapshot_of(
            ClusterDescription(
                ",".join(f"{host}:{port}" for host, port in self._bootstrap), told["cluster_id"], told["controller_id"],
                brokers, tuple(_described(told["topics"])), self.reassignments(),
            )
        )  # fmt: skip

    def reassign(self, targets: Targets) -> tuple[ErrorCode, ...]:
        """See ``Administration.reassign``."""
        topics: dict[str, list[dict[str, Any]]] = {}
        names = [(targets.names[targets.topic[i]], int(targets.partition[i])) for i in range(len(targets))]
        for place, (topic, partition) in enumerate(names):
            replicas = None if targets.cancel[place] else _list(targets.replicas, place)
            topics.setdefault(topic, []).append({"partition_index": partition, "replicas": replicas})
        asked = [{"name": name, "partitions": parts} for name, parts in topics.items()]
        told = self._ask(ALTER, timeout=REQUEST_MS, topics=asked)
        codes = {
            (topic["name"], one["partition_index"]): error_of(one["error_code"])
            for topic in told["responses"]
            for one in topic["partitions"]
        }
        return tuple(codes.get(name, ErrorCode.UNKNOWN_SERVER_ERROR) for name in names)

    def reassignments(self) -> dict[TopicPartition, Moving]:
        """See ``Administration.reassignments``."""
        told = self._ask(LIST, timeout=REQUEST_MS, topics=None)
        return {
            (topic["name"], one["partition_index"]): Moving(
                tuple(one["replicas"]), tuple(one["adding_replicas"]), tuple(one["removing_replicas"])
            )
            for topic in told["topics"]
            for one in topic["partitions"]
        }

    def elect(
        self, election: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        """See ``Administration.elect``."""
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions or ():
            topics.setdefault(topic, []).append(partition)
        asked = None if partitions is None else [{"topic": name, "partitions": one} for name, one in topics.items()]
        told = self._ask(ELECT, election_type=int(election), topic_partitions=asked, timeout=REQUEST_MS)
        return {
            (topic["topic"], one["partition_id"]): error_of(one["error_code"])
            for topic in told["replica_election_results"]
            for one in topic["partition_result"]
        }

    def _ask(self, api: tuple[int, int], **fields: Any) -> dict[str, Any]:
        """Ask the controller. What broke is asked again: all that is asked here can be. Raises StoreError."""
        end_s, problem = time.monotonic() + LOOKED_FOR_S, "nobody answers"
        while time.monotonic() < end_s:
            try:
                connection = self._connection or self._to_controller()
                told = self._exchange(connection, api, fields)
            except _BROKEN as error:
                problem = str(error) or type(error).__name__
                if isinstance(error, Refused):
                    raise StoreError(f"no controller can be reached: {problem}") from error
            else:
                code = verdict(told)
                if code is ErrorCode.NONE:
                    return told
                if code is not ErrorCode.NOT_CONTROLLER:
                    raise StoreError(f"{code.name}: {told.get('error_message') or 'the controller gives no reason'}")
                problem = "the controller has changed"
            self.close()
            time.sleep(AGAIN_S)
        raise StoreError(f"no controller can be reached: {problem}")

    def _to_controller(self) -> Connection:
        """A connection to the controller, as the first of the bootstrap brokers that answers names it; where none does,
        what is raised is for good if it is with one of them."""
        failure: Exception = WireError("no bootstrap broker was given")
        for host, port in self._bootstrap:
            try:
                asked = self._open(host, port)
                try:
                    told = self._exchange(asked, METADATA, {"topics": [], "allow_auto_topic_creation": False})
                finally:
                    asked.close()
            except _BROKEN as error:
                failure = failure if isinstance(failure, Refused) else error
                continue
            places = {one["node_id"]: (one["host"], one["port"]) for one in told["brokers"]}
            if told["controller_id"] in places:
                self._connection = self._open(*places[told["controller_id"]])
                return self._connection
            failure = WireError(f"{host}:{port} knows no controller")
        raise failure

    def _open(self, host: str, port: int) -> Connection:
        connection = Connection(Target(host, port, self._security.tls, self._credentials, CLIENT_ID))
        try:
            connection.open(REQUEST_MS)
        except BaseException:
            connection.close()
            raise
        return connection

    def _exchange(self, connection: Connection, api: tuple[int, int], fields: Mapping[str, Any]) -> dict[str, Any]:
        self._correlation += 1
        request = encode_request(*api, self._correlation, CLIENT_ID, fields)
        reply = connection.exchange([request], REPLY_BYTES_MAX, REQUEST_MS)
        correlation, told = decode_response(*api, reply)
        if correlation != self._correlation:
            raise WireError(f"an answer to request {correlation}, where {self._correlation} was asked")
        return told


def open_admin(url: str, config: Mapping[str, str]) -> AdminClient:
    """The admin client for ``kafka://HOST:PORT[,HOST:PORT]...``; ``config`` has the keys of Kafka's clients. Raises
    ConfigError."""
    places = [_place(one.strip()) for one in url.removeprefix("kafka:").removeprefix("//").split(",")]
    return AdminClient(places, client_security(config))


def client_security(config: Mapping[str, str]) -> ListenerSecurity:
    """``security.protocol``, ``ssl.*``, ``sasl.mechanism`` and ``sasl.jaas.config``, as clients have them. Raises
    ConfigError."""
    protocol, mechanism = config.get("security.protocol", "PLAINTEXT").strip(), config.get("sasl.mechanism", "").strip()
    given = {key: value for key, value in config.items() if key.startswith("ssl.")}
    given["listener.security.protocol.map"] = f"{_LISTENER}:{protocol}"
    given["sasl.mechanism.inter.broker.protocol"] = mechanism
    if "sasl.jaas.config" in config:
        given[f"listener.name.{_LISTENER.lower()}.{mechanism.lower()}.sasl.jaas.config"] = config["sasl.jaas.config"]
    return security_of(given, _LISTENER)


def verdict(told: Mapping[str, Any]) -> ErrorCode:
    """What an answer says of the whole question."""
    return ErrorCode.NOT_CONTROLLER if _all_refused(told) else error_of(told.get("error_code", 0))


def _all_refused(told: Mapping[str, Any]) -> bool:
    """Whether somebody has answered of each partition that he is not the controller: it is asked again of who is."""
    results = [(one, "partition_result") for one in told.get("replica_election_results") or ()]
    results += [(one, "partitions") for one in told.get("responses") or ()]
    codes = {each["error_code"] for one, name in results for each in one[name]}
    return codes == {ErrorCode.NOT_CONTROLLER}


def _place(one: str) -> tuple[str, int]:
    host, _, port = one.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal() and int(port) < 2**16):
        raise ConfigError("--bootstrap-server", repr(one), "HOST:PORT[,HOST:PORT]...")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _described(topics: Iterable[Mapping[str, Any]]) -> Iterator[Described]:
    for topic in topics:
        for one in topic["partitions"]:
            yield Described(
                topic["name"], one["partition_index"], one["leader_id"], one["leader_epoch"], one["replica_nodes"],
                one["isr_nodes"],
            )  # fmt: skip


def _list(lists: Ragged, place: int) -> list[int]:
    found: list[int] = lists[place].tolist()
    return found
