"""A fake broker: receives requests on a socket, decodes them, and responds as a test demands."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from kframe.embedded.describe import Request
from kframe.plugin.cluster import Registration
from kframe.testing.clusters import registration
from kframe.testing.waiting import until
from kframe_kafka_wire.protocol.codec import decode_header, decode_request, encode_request, encode_response

METADATA: Final = 3
API_VERSIONS: Final = 18
DESCRIBE_CONFIGS: Final = 32
APIS: Final = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata"}
#: The id of the controller in tests.
CONTROLLER_ID: Final = 1000

#: An action for one request. It receives the connection and the encoded response.
Action = Callable[[socket.socket, bytes], None]


@dataclass(frozen=True, slots=True)
class Received:
    """A received request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: dict[str, Any]

    @property
    def trace(self) -> Request:
        """The request as in a trace. The caller adds the broker id."""
        body = self.body
        content = {"api": APIS[self.api_key], "controller_epoch": body["controller_epoch"]}
        partitions = {f"{topic}-{content[0]}": content[1] for topic, content in _partitions(self)}
        if self.api_key == 4:
            content["live_leaders"] = sorted(leader["broker_id"] for leader in body["live_leaders"])
        if self.api_key == 6:
            content["live_brokers"] = sorted(broker["id_"] for broker in body["live_brokers"])
        return content | {"partitions": dict(sorted(partitions.items()))}


def respond(connection: socket.socket, reply: bytes) -> None:
    """Send the normal response."""
    connection.sendall(struct.pack(">i", len(reply)) + reply)


def closed(connection: socket.socket, _reply: bytes) -> None:
    """Close the connection without a response."""
    connection.shutdown(socket.SHUT_RDWR)


def settings(**overrides: str) -> dict[str, str]:
    """Settings of a controller by Kafka's keys, with underscores for dots."""
    defaults = {"broker.id": str(CONTROLLER_ID), "listeners": "PLAINTEXT://127.0.0.1:9999", "broker.rack": "r1"}
    return defaults | {key.replace("_", "."): value for key, value in overrides.items()}


class FakeBroker:
    """Listens on its own port until ``close``.

    It models connections: frames, versions, errors, silence and closed sockets. It models no partition and no log, so
    that its responses do not depend on earlier requests.

    ``script`` has an action for each of the next requests; ``default_action`` follows. ``errors`` has error
    codes of partitions by API key and name.
    """

    def __init__(
        self, wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection, port: int = 0
    ) -> None:
        self.requests: list[Received] = []
        self.raw: list[bytes] = []
        """The bytes of each request without size."""
        self.unanswered: list[Received] = []
        """The requests after which it closed the connection."""
        self.script: deque[Action] = deque()
        self.default_action: Action = respond
        self.errors: dict[tuple[int, str], int] = {}
        self.top_level_errors: dict[int, int] = {}
        """Top-level errors by API key. Such a response has no partitions."""
        self.connections = 0
        self.kraft = False
        """Whether it acts as a KRaft-mode broker, which closes the connection on control requests."""
        self.versions: dict[int, int] = dict.fromkeys((API_VERSIONS, *APIS), 0)
        """The newest version of each API that ApiVersions offers."""
        self.features: dict[str, int] = {}
        """The finalized levels of features in ApiVersions."""
        self.responses: dict[int, Mapping[str, Any]] = {}
        """Its responses to further APIs by API key. Without one it closes the connection."""
        self.response_functions: dict[int, Callable[[Received], Mapping[str, Any]]] = {}
        """Functions that make responses to further APIs without an entry in ``responses``."""
        self.others: list[Received] = []
        """The received requests of further APIs."""
        self._wrap = wrap
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close the port and all connections. Wait for the threads."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def registration(self, broker_id: int = 1, broker_epoch: int = 7) -> Registration:
        """A registration with its address."""
        registered = registration(broker_id, broker_epoch=broker_epoch)
        return replace(registered, endpoints=(replace(registered.endpoints[0], port=self.port),))

    def await_requests(self, count: int) -> bool:
        """Wait for that many requests. Return whether they have arrived."""
        return until(lambda: len(self.requests) >= count)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            self._threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            used = self._wrap(connection)
            self._open.append(used)
            with used:
                while frame := read_frame(used):
                    self._take(used, frame)

    def _take(self, connection: socket.socket, frame: bytes) -> None:
        received = decode(frame)
        if received.api_key not in APIS:
            self._respond_to_other(connection, received)
            return
        self.raw.append(frame)
        reply = self._reply(received)
        action = self.script.popleft() if self.script else self.default_action
        self.requests.append(received)
        if self.kraft:
            connection.shutdown(socket.SHUT_RDWR)
            return
        action(connection, reply)
        if connection.fileno() < 0:
            self.unanswered.append(received)

    def _respond_to_other(self, connection: socket.socket, received: Received) -> None:
        self.others.append(received)
        response = {API_VERSIONS: self._api_versions(), **self.responses}.get(received.api_key)
        if response is None and received.api_key in self.response_functions:
            response = self.response_functions[received.api_key](received)
        if response is None:
            connection.shutdown(socket.SHUT_RDWR)
        else:
            connection.sendall(
                encode_response(received.api_key, received.api_version, received.correlation_id, response)
            )

    def _api_versions(self) -> Mapping[str, Any]:
        offered = {key: newest for key, newest in self.versions.items() if not (self.kraft and key in APIS)}
        return {
            "api_keys": [{"api_key": key, "min_version": 0, "max_version": newest} for key, newest in offered.items()],
            "finalized_features": [
                {"name": name, "max_version_level": level, "min_version_level": level}
                for name, level in self.features.items()
            ],
        }

    def _reply(self, received: Received) -> bytes:
        top_level_error = self.top_level_errors.get(received.api_key, 0)
        entries = [] if top_level_error else [(topic, content[0]) for topic, content in _partitions(received)]
        errors = {
            (topic, partition): self.errors.get((received.api_key, f"{topic}-{partition}"), 0)
            for topic, partition in entries
        }
        return encode_reply(received, top_level_error, errors)


def read_frame(connection: socket.socket) -> bytes | None:
    """A frame without its size. None at the end of the stream."""
    head = _read(connection, 4)
    return None if head is None else _read(connection, int.from_bytes(head, "big"))


def _read(connection: socket.socket, length: int) -> bytes | None:
    data = bytearray()
    while len(data) < length:
        piece = connection.recv(min(length - len(data), 2**20))
        if not piece:
            return None
        data += piece
    return bytes(data)


def decode(frame: bytes) -> Received:
    """Decode a request. It must be equal after encoding it again."""
    header = decode_header(frame)
    body = decode_request(header, frame)
    received = header.api_key, header.api_version, header.correlation_id, header.client_id, body
    assert encode_request(*received)[4:] == frame
    return Received(*received)


def encode_reply(received: Received, top_level_error: int, errors: dict[tuple[str, int], int]) -> bytes:
    """Encode the response to a control request without its size, with these errors of partitions."""
    partitions = [
        {"topic_name": topic, "partition_index": partition, "error_code": error}
        for (topic, partition), error in errors.items()
    ]
    ids = {state["topic_name"]: state.get("topic_id") for state in received.body.get("topic_states", ())}
    topics = [
        {
            "topic_id": ids.get(topic),
            "partition_errors": [entry for entry in partitions if entry["topic_name"] == topic],
        }
        for topic in dict.fromkeys(name for name, _ in errors)
    ]
    fields = {"error_code": top_level_error, "partition_errors": partitions, "topics": topics}
    return encode_response(received.api_key, received.api_version, received.correlation_id, fields)[4:]


def _partitions(received: Received) -> list[tuple[str, tuple[int, dict[str, Any]]]]:
    """(topic, (partition, content)) for each partition of a control request of any version."""
    body = received.body
    if received.api_key == 5 and received.api_version < 3:
        same = {"leader_epoch": None, "delete_partition": body["delete_partitions"]}
        named = [(each["topic_name"], each["partition_index"]) for each in body.get("ungrouped_partitions", ())]
        named += [(topic["name"], index) for topic in body.get("topics", ()) for index in topic["partition_indexes"]]
        return [(topic, (index, same)) for topic, index in named]
    grouped = [(state["topic_name"], state) for state in body.get("ungrouped_partition_states", ())]
    grouped += [
        (topic["topic_name"], state) for topic in body.get("topic_states", ()) for state in topic["partition_states"]
    ]
    return [(topic, (state["partition_index"], _described(received.api_key, state))) for topic, state in grouped]


#: Names of a partition's fields in requests, by API key.
_FIELDS: Final = {
    4: (
        "leader",
        "leader_epoch",
        "isr",
        "partition_epoch",
        "replicas",
        "adding_replicas",
        "removing_replicas",
        "is_new",
        "leader_recovery_state",
    ),
    5: ("leader_epoch", "delete_partition"),
    6: ("leader", "leader_epoch", "isr", "partition_epoch", "replicas", "offline_replicas"),
}


def _described(api_key: int, state: Mapping[str, Any]) -> dict[str, Any]:
    aliases = {"partition_epoch": "zk_version"} if api_key == 6 else {}
    return {name: state.get(aliases.get(name, name)) for name in _FIELDS[api_key]}
