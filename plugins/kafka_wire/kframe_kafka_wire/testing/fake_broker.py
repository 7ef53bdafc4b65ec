"""A fake broker: receives control requests on a socket, decodes them by kio, and responds as a test demands."""

from __future__ import annotations

import io
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from kframe_zookeeper.testing.process import until
from kio.schema.errors import ErrorCode as KioError
from kio.serial import entity_reader, entity_writer

from kframe.embedded.describe import Request
from kframe_kafka_wire.codec import encode_response

API_VERSIONS: Final = 18
METADATA: Final = 3
APIS: Final = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata"}
#: The id of the controller in tests.
US: Final = 1000
_MODULES: Final = {4: "leader_and_isr", 5: "stop_replica", 6: "update_metadata"}

#: An action for one request. It receives the connection and the encoded response.
Action = Callable[[socket.socket, bytes], None]


@dataclass(frozen=True, slots=True)
class Received:
    """A received request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body: Any
    """The object of kio."""

    @property
    def trace(self) -> Request:
        """The request as in a trace. The caller adds the broker id."""
        body = self.body
        content = {"api": APIS[self.api_key], "controller_epoch": body.controller_epoch}
        partitions = {f"{topic}-{content[0]}": content[1] for topic, content in _partitions(self)}
        if self.api_key == 4:
            content["live_leaders"] = sorted(leader.broker_id for leader in body.live_leaders)
        if self.api_key == 6:
            content["live_brokers"] = sorted(broker.id_ for broker in body.live_brokers)
        return content | {"partitions": dict(sorted(partitions.items()))}


def answered(connection: socket.socket, reply: bytes) -> None:
    """Send the normal response."""
    connection.sendall(struct.pack(">i", len(reply)) + reply)


def closed(connection: socket.socket, _reply: bytes) -> None:
    """Close the connection without a response."""
    connection.shutdown(socket.SHUT_RDWR)


def send_frame(length: int, content: bytes) -> Action:
    """An action that sends these bytes."""
    return lambda connection, _reply: connection.sendall(struct.pack(">i", length) + content)


def hold_next_answer(broker: FakeBroker) -> threading.Event:
    """Delay the next response of a broker until the event is set."""
    release = threading.Event()

    def hold(connection: socket.socket, reply: bytes) -> None:
        release.wait(30)
        answered(connection, reply)

    broker.script.append(hold)
    return release


def settings(**more: str) -> dict[str, str]:
    """Settings of a controller by Kafka's keys, with underscores for dots."""
    own = {"broker.id": str(US), "listeners": "PLAINTEXT://127.0.0.1:9999", "broker.rack": "r1"}
    return own | {key.replace("_", "."): value for key, value in more.items()}


class FakeBroker:
    """Listens on its own port until ``close``.

    ``script`` has an action for each of the next requests; ``usual`` is the action after that. ``errors`` has error
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
        self.usual: Action = answered
        self.errors: dict[tuple[int, str], int] = {}
        self.top: dict[int, int] = {}
        """Top-level errors by API key. Such a response has no partitions."""
        self.connections = 0
        self.kraft = False
        """Whether it acts as a KRaft-mode broker, which closes the connection on control requests."""
        self.metadata: dict[str, Any] | None = None
        """Its response to Metadata; None closes the connection."""
        self._wrap = wrap
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Close the port and all connections, and wait for the threads."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

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
        if int.from_bytes(frame[:2], "big") == API_VERSIONS:
            answered(connection, self._api_versions(frame))
            return
        if int.from_bytes(frame[:2], "big") == METADATA:
            if self.metadata is None:
                connection.shutdown(socket.SHUT_RDWR)
            else:
                version, correlation_id = struct.unpack_from(">hi", frame, 2)
                connection.sendall(encode_response(METADATA, version, correlation_id, self.metadata))
            return
        received = decode(frame)
        self.raw.append(frame)
        reply = self._reply(received)
        action = self.script.popleft() if self.script else self.usual
        self.requests.append(received)
        if self.kraft:
            connection.shutdown(socket.SHUT_RDWR)
            return
        action(connection, reply)
        if connection.fileno() < 0:
            self.unanswered.append(received)

    def _api_versions(self, frame: bytes) -> bytes:
        served = (API_VERSIONS,) if self.kraft else (API_VERSIONS, *APIS)
        keys = [{"api_key": key, "min_version": 0, "max_version": 0} for key in served]
        correlation_id = int.from_bytes(frame[4:8], "big")
        return encode_response(API_VERSIONS, 0, correlation_id, {"error_code": 0, "api_keys": keys})[4:]

    def _reply(self, received: Received) -> bytes:
        top = self.top.get(received.api_key, 0)
        entries = [] if top else [(topic, content[0]) for topic, content in _partitions(received)]
        errors = {
            (topic, partition): self.errors.get((received.api_key, f"{topic}-{partition}"), 0)
            for topic, partition in entries
        }
        return encode_reply(received, top, errors)


def read_frame(connection: socket.socket) -> bytes | None:
    """A frame without its size; None at the end of the stream."""
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
    """Decode a control request by kio. Trailing bytes are an error."""
    api_key, api_version = struct.unpack_from(">hh", frame)
    schema = getattr(_module(api_key, api_version, "request"), f"{APIS[api_key]}Request")
    header, body_offset = entity_reader(schema.__header_schema__)(frame, 0)
    body, read = entity_reader(schema)(frame, body_offset)
    assert body_offset + read == len(frame)
    return Received(api_key, api_version, header.correlation_id, header.client_id, body)


def encode_reply(received: Received, top: int, errors: dict[tuple[str, int], int]) -> bytes:
    """Encode the response to a request by kio, with these errors of partitions."""
    module = _module(received.api_key, received.api_version, "response")
    prefix = "LeaderAndIsr" if received.api_key == 4 else "StopReplica"
    content: dict[str, Any] = {"error_code": KioError(top)}
    if received.api_key == 4 and received.api_version >= 5:
        ids = {state.topic_name: state.topic_id for state in received.body.topic_states}
        content["topics"] = tuple(
            module.LeaderAndIsrTopicError(
                topic_id=ids[topic],
                partition_errors=tuple(
                    module.LeaderAndIsrPartitionError(partition_index=partition, error_code=KioError(error))
                    for (name, partition), error in errors.items() if name == topic
                ),
            )
            for topic in dict.fromkeys(name for name, _ in errors)
        )  # fmt: skip
    elif received.api_key != 6:
        make = getattr(module, f"{prefix}PartitionError")
        content["partition_errors"] = tuple(
            make(topic_name=topic, partition_index=partition, error_code=KioError(error))
            for (topic, partition), error in errors.items()
        )
    schema = getattr(module, f"{APIS[received.api_key]}Response")
    stream = io.BytesIO()
    header = schema.__header_schema__
    entity_writer(header)(stream, header(correlation_id=received.correlation_id))
    entity_writer(schema)(stream, schema(**content))
    return stream.getvalue()


def _module(api_key: int, api_version: int, kind: str) -> Any:
    return import_module(f"kio.schema.{_MODULES[api_key]}.v{api_version}.{kind}")


def _partitions(received: Received) -> list[tuple[str, tuple[int, dict[str, Any]]]]:
    """(topic, (partition, content)) for each partition of a request of any version."""
    body = received.body
    if received.api_key == 5 and received.api_version < 3:
        same = {"leader_epoch": None, "delete_partition": body.delete_partitions}
        if received.api_version == 0:
            return [
                (partition.topic_name, (partition.partition_index, same)) for partition in body.ungrouped_partitions
            ]
        return [(topic.name, (index, same)) for topic in body.topics for index in topic.partition_indexes]
    if hasattr(body, "ungrouped_partition_states"):
        grouped = [(state.topic_name, state) for state in body.ungrouped_partition_states]
    else:
        grouped = [(topic.topic_name, state) for topic in body.topic_states for state in topic.partition_states]
    return [(topic, (state.partition_index, _described(received.api_key, state))) for topic, state in grouped]


#: Names of a partition's fields in requests, by API key.
_FIELDS: Final = {
    4: ("leader", "leader_epoch", "isr", "partition_epoch", "replicas", "adding_replicas", "removing_replicas",
        "is_new", "leader_recovery_state"),
    5: ("leader_epoch", "delete_partition"),
    6: ("leader", "leader_epoch", "isr", "partition_epoch", "replicas", "offline_replicas"),
}  # fmt: skip


def _described(api_key: int, state: Any) -> dict[str, Any]:
    content = {}
    for name in _FIELDS[api_key]:
        kio_name = "zk_version" if api_key == 6 and name == "partition_epoch" else name
        value = getattr(state, kio_name, None)
        content[name] = list(value) if isinstance(value, tuple) else value
    return content
