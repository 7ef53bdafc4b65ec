"""Clients that send random admin requests to controller instances, and record what they know of each."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Sequence
from typing import Final

from kframe_kafka_wire.protocol.codec import Fields
from kframe_kafka_wire.protocol.errors import CodecError, error_of

from kframe.plugin import ErrorCode
from kframe.plugin.cluster import ElectionType
from verification.kafka_wire.campaigns.history_check import HistoryOperation
from verification.kafka_wire.client import Client
from verification.kafka_wire.instances import InstanceProcess
from verification.zookeeper.handover import ALL

#: A response is awaited for so long.
RESPONSE_TIMEOUT_S: Final = 4.0
_TIMEOUT_MS: Final = 3_000
#: The pause of a client whose request was refused, and the pause between two requests.
_RETRY_BACKOFF_S: Final = 0.1
_PAUSE_S: Final = 0.02
_PARTITIONS_MAX: Final = 6
#: After these codes a change may have happened or not.
_UNCERTAIN: Final = frozenset({"NOT_CONTROLLER", "REQUEST_TIMED_OUT", "UNKNOWN_SERVER_ERROR"})
_READS: Final = ("describe", "list")
#: Operations of clients that change topics, with their weights.
_CHANGES: Final = {
    "create": 4,
    "delete": 2,
    "grow": 3,
    "reassign": 4,
    "cancel": 2,
    "elect": 2,
    "describe": 3,
    "list": 2,
}
#: Kinds that occur in a checked history. The others seldom succeed: most cancellations find no reassignment, and most
#: elections change no leader.
_NEEDED: Final = frozenset({"create", "delete", "grow", "reassign", "describe", "list"})
#: API keys and versions.
_METADATA, _CREATE, _DELETE, _GROW = (3, 12), (19, 7), (20, 6), (37, 3)
_ELECT, _ALTER, _LIST = (43, 2), (45, 0), (46, 0)


class SharedHistory:
    """The operations of all clients, and the topics that they use at present."""

    def __init__(self, topics: int, topic_s: float) -> None:
        """``topics`` at a time. Each is used for ``topic_s``, so that its history is short."""
        self.operations: list[HistoryOperation] = []
        self.over = threading.Event()
        self.blocked: InstanceProcess | None = None
        """An instance that clients which change topics do not reach."""
        self._topics = topics
        self._topic_s = topic_s
        self._begun_s = time.monotonic()

    def topic(self, number: int, *, before: int = 0) -> str:
        """A topic that is used now, or was ``before`` so many changes of topics."""
        generation = int((time.monotonic() - self._begun_s) / self._topic_s) - before
        return f"history-{generation}-{number % self._topics}"

    def append(self, operation: HistoryOperation) -> None:
        """Add an operation. Reads without a response say nothing."""
        if operation.end or operation.kind not in _READS:
            self.operations.append(operation)

    def missing_kinds(self) -> list[str]:
        """Kinds that a checked history needs, and of which no operation has succeeded yet."""
        succeeded = {operation.kind for operation in list(self.operations) if operation.code == "NONE"}
        return sorted(_NEEDED - succeeded)


class HistoryClient:
    """A client that stays with an instance until that refuses a request.

    A client that only reads comes back to the same instance, which may have lost its role in the meantime.
    """

    def __init__(
        self, number: int, instances: Sequence[InstanceProcess], history: SharedHistory, seed: int, *, reads: bool
    ) -> None:
        self.failure: Exception | None = None
        """What has ended the client early."""
        self.thread: Final = threading.Thread(target=self._run, name=f"history-client-{number}")
        self._number = number
        self._instances = itertools.cycle([*instances[number % 2 :], *instances[: number % 2]])
        self._instance = next(self._instances)
        self._client: Client | None = None
        self._history = history
        self._random = random.Random(f"{seed}-{number}")
        self._reads = reads

    def _run(self) -> None:
        try:
            while not self._history.over.wait(_PAUSE_S):
                self._step()
        except Exception as error:
            self.failure = error
        finally:
            self._disconnect()

    def _step(self) -> None:
        topic = self._history.topic(self._random.randrange(1 << 16))
        if self._reads:
            kind = self._random.choice(_READS)
        else:
            kind = self._random.choices(list(_CHANGES), list(_CHANGES.values()))[0]
        operation = HistoryOperation(self._number, topic, kind, 0)
        try:
            client = self._connected()
        except OSError:
            self._change_instance()
            return
        operation.call = time.monotonic_ns()
        try:
            getattr(self, f"_{operation.kind}")(operation, client)
        except (OSError, CodecError):
            operation.code = ""
        if operation.code in _UNCERTAIN or not operation.code:
            operation.code = ""
            self._change_instance()
        else:
            operation.end = time.monotonic_ns()
        self._history.append(operation)

    def _create(self, operation: HistoryOperation, client: Client) -> None:
        operation.partitions = self._random.randint(1, 2)
        operation.replicas = self._replicas()
        lists = [operation.replicas] * operation.partitions
        assignments = [{"partition_index": index, "broker_ids": brokers} for index, brokers in enumerate(lists)]
        topic = {
            "name": operation.topic,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
        }
        body = client.ask(*_CREATE, topics=[topic], timeout=_TIMEOUT_MS, validate_only=False)["topics"][0]
        operation.code = _name(body)
        if operation.code == "NONE":
            operation.id = body["topic_id"].hex()

    def _delete(self, operation: HistoryOperation, client: Client) -> None:
        if self._random.random() < 0.5:  # A topic of the past is deleted, so that topics do not become more and more.
            operation.topic = self._history.topic(self._random.randrange(1 << 16), before=2)
        topic = {"name": operation.topic, "topic_id": None}
        operation.code = _name(client.ask(*_DELETE, topics=[topic], timeout=_TIMEOUT_MS)["responses"][0])

    def _grow(self, operation: HistoryOperation, client: Client) -> None:
        operation.partitions = self._random.randint(1, _PARTITIONS_MAX)
        topic = {"name": operation.topic, "count": operation.partitions, "assignments": None}
        body = client.ask(*_GROW, topics=[topic], timeout=_TIMEOUT_MS, validate_only=False)
        operation.code = _name(body["results"][0])

    def _reassign(self, operation: HistoryOperation, client: Client) -> None:
        operation.replicas = self._replicas()
        self._alter(operation, client, operation.replicas)

    def _cancel(self, operation: HistoryOperation, client: Client) -> None:
        self._alter(operation, client, None)

    def _alter(self, operation: HistoryOperation, client: Client, replicas: Sequence[int] | None) -> None:
        topic = {"name": operation.topic, "partitions": [{"partition_index": 0, "replicas": replicas}]}
        body = client.ask(*_ALTER, timeout=_TIMEOUT_MS, topics=[topic])
        operation.code = _name(body if body["error_code"] else body["responses"][0]["partitions"][0])

    def _elect(self, operation: HistoryOperation, client: Client) -> None:
        topic = {"topic": operation.topic, "partitions": [0]}
        body = client.ask(*_ELECT, election_type=ElectionType.PREFERRED, topic_partitions=[topic], timeout=_TIMEOUT_MS)
        operation.code = _name(
            body if body["error_code"] else body["replica_election_results"][0]["partition_result"][0]
        )

    def _describe(self, operation: HistoryOperation, client: Client) -> None:
        topics = [{"name": operation.topic, "topic_id": None}]
        body = client.ask(*_METADATA, topics=topics, allow_auto_topic_creation=False)["topics"][0]
        operation.code = _name(body)
        if operation.code == "NONE":
            first = min(body["partitions"], key=lambda partition: partition["partition_index"])
            operation.id, operation.partitions = body["topic_id"].hex(), len(body["partitions"])
            operation.replicas, operation.leader = first["replica_nodes"], first["leader_id"]

    def _list(self, operation: HistoryOperation, client: Client) -> None:
        topics = [{"name": operation.topic, "partition_indexes": [0]}]
        body = client.ask(*_LIST, timeout=_TIMEOUT_MS, topics=topics)
        operation.code = _name(body)
        for topic in body["topics"]:
            (partition,) = topic["partitions"]
            operation.replicas, operation.adding = partition["replicas"], partition["adding_replicas"]
            operation.removing = partition["removing_replicas"]

    def _replicas(self) -> list[int]:
        return self._random.sample(ALL, self._random.randint(1, 2))

    def _connected(self) -> Client:
        """The connection to the instance. Raises OSError."""
        if self._instance is self._history.blocked and not self._reads:
            raise ConnectionError("the network is blocked")
        if self._client is None:
            self._client = Client(self._instance.address, patience_s=RESPONSE_TIMEOUT_S)
            if not self._reads:  # A standby closes the connection, as for all clients that look for the controller.
                self._client.ask(*_METADATA, topics=[], allow_auto_topic_creation=False)
        return self._client

    def _change_instance(self) -> None:
        """Disconnect. A client that changes topics turns to the other instance."""
        self._disconnect()
        if not self._reads:
            self._instance = next(self._instances)
        self._history.over.wait(_RETRY_BACKOFF_S)

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.socket.close()
            self._client = None


def _name(body: Fields) -> str:
    """The name of the error code of a response."""
    code: ErrorCode = error_of(body["error_code"])
    return code.name
