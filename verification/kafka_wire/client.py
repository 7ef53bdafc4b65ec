"""A client that uses only the codec, with one request at a time."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Mapping
from typing import Any, Final

from kframe_kafka_wire.protocol import codec

_PATIENCE_S: Final = 30.0
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37


class Client:
    """A connection. It is a context manager."""

    def __init__(
        self,
        address: str,
        context: ssl.SSLContext | None = None,
        client_id: str = "a-test",
        *,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        """Connect to HOST:PORT. A step that takes more than ``patience_s`` raises TimeoutError."""
        host, _, port = address.rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout=patience_s)
        self.socket = plain if context is None else context.wrap_socket(plain, server_hostname=host)
        self._client_id = client_id
        self._last = 0

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, api_key: int, version: int, **fields: Any) -> dict[str, Any]:
        """Send a request, and return the body of the response. Raises ConnectionError without one, CodecError if
        malformed."""
        self._last += 1
        self.send(codec.encode_request(api_key, version, self._last, self._client_id, fields))
        correlation_id, body = codec.decode_response(api_key, version, self.receive())
        assert correlation_id == self._last
        return body

    def log_in(self, user: str, password: str) -> int:
        """Log in by PLAIN. Return the error code of the response to the password."""
        assert self.ask(17, 1, mechanism="PLAIN")["error_code"] == 0
        return int(self.ask(36, 2, auth_bytes=f"\0{user}\0{password}".encode())["error_code"])

    def describe_topic(self, topic: str, version: int = 4) -> dict[str, dict[str, Any]]:
        """The settings of a topic with their synonyms, by name."""
        resource = {"resource_type": 2, "resource_name": topic, "configuration_keys": None}
        (result,) = self.ask(32, version, resources=[resource], include_synonyms=True)["results"]
        return {config["name"]: config for config in result["configs"]}

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        self.socket.sendall(data)

    def receive(self) -> bytes:
        """The next frame without its size. Raises ConnectionError if the server closes the connection."""
        (size,) = struct.unpack(">i", self._read(4))
        return self._read(size)

    def ended(self) -> bool:
        """Whether the server closes the connection without sending anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionError("the connection was ended")
            data += piece
        return bytes(data)


def change_topics(
    client: Client, api_key: int, version: int, counts: Mapping[str, int], timeout_ms: int = 30_000, **fields: Any
) -> tuple[list[int], int]:
    """Create, delete or grow topics with these partition counts. Return error codes and the throttle time in ms."""
    results = {CREATE_TOPICS: "topics", DELETE_TOPICS: "responses", CREATE_PARTITIONS: "results"}[api_key]
    assignments = None if api_key == CREATE_PARTITIONS else ()
    topics = [
        {"name": name, "num_partitions": count, "replication_factor": 1, "count": count, "assignments": assignments}
        for name, count in counts.items()
    ]
    body = client.ask(api_key, version, topics=topics, topic_names=list(counts), timeout=timeout_ms, **fields)
    return [result["error_code"] for result in body[results]], body["throttle_time"]
