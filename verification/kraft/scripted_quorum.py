"""A controller of a quorum for tests, on loopback. It serves Fetch and FetchSnapshot by the rules of a KRaft leader.

A test states its log and leader. A raw reply replaces the next response to an API.
"""

from __future__ import annotations

import socket
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Self

from kframe_kafka_wire.connections.broker import Target
from kframe_kafka_wire.connections.node import CLIENT_ID, NodeConnection
from kframe_kafka_wire.protocol.codec import decode_header, decode_request, encode_response
from kframe_kafka_wire.protocol.metadata_log import TOPIC, TOPIC_ID
from kframe_kraft.batches import read_batches
from kframe_kraft.disk import SnapshotId
from kframe_kraft.disk.names import BOOTSTRAP_ID
from kframe_kraft.live.calls import DESCRIBE_QUORUM, FETCH, FETCH_SNAPSHOT, Address

from kframe.plugin import ErrorCode

HOST: Final = "127.0.0.1"
_API_VERSIONS: Final = 18
_CONTROLLER_APIS: Final[tuple[tuple[int, int], ...]] = ((FETCH, 17), (FETCH_SNAPSHOT, 1), (DESCRIBE_QUORUM, 2))


def connect(address: Address, *, reply_bytes_max: int = 2**22) -> NodeConnection:
    """A connection without security."""
    return NodeConnection(Target(*address, None, None, CLIENT_ID), reply_bytes_max=reply_bytes_max)


@dataclass(slots=True)
class ScriptedState:
    """The state of the controllers of a test. ``batches`` are those of the leader from the snapshot's end on."""

    leader_id: int = 1
    leader_epoch: int = 1
    batches: list[bytes] = field(default_factory=list)
    high_watermark: int = 0
    snapshot_id: SnapshotId = BOOTSTRAP_ID
    snapshot: bytes = b""
    diverging: tuple[int, int] | None = None
    """Epoch and end offset of the next response to Fetch."""
    addresses: dict[int, tuple[str, int]] = field(default_factory=dict)


class ScriptedController:
    """A controller. With ``is_broker`` it is the listener of a broker, which does not know FetchSnapshot."""

    def __init__(self, node_id: int, state: ScriptedState, *, is_broker: bool = False) -> None:
        self.requests: Counter[int] = Counter()
        """Requests by API key."""
        self.raw_replies: dict[int, list[bytes]] = {}
        """Frames without size that replace the next responses to an API."""
        self._id = node_id
        self._state = state
        self._apis = [api for api in _CONTROLLER_APIS if not is_broker or api[0] != FETCH_SNAPSHOT]
        self._listening = socket.create_server((HOST, 0))
        self._connections: list[socket.socket] = []
        self.address: tuple[str, int] = self._listening.getsockname()
        if not is_broker:
            state.addresses[node_id] = self.address
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Close the listener and all connections."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _accept(self) -> None:
        threads = []
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                break
            self._connections.append(connection)
            threads.append(threading.Thread(target=self._serve, args=(connection,), daemon=True))
            threads[-1].start()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, suppress(OSError):
            while len(size := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(size, "big"))
                header = decode_header(frame)
                self.requests[header.api_key] += 1
                if raw := self.raw_replies.get(header.api_key):
                    reply = raw.pop(0)
                    connection.sendall(len(reply).to_bytes(4, "big") + reply)
                    continue
                fields = self._respond(header.api_key, decode_request(header, frame))
                connection.sendall(encode_response(header.api_key, header.api_version, header.correlation_id, fields))

    def _respond(self, api_key: int, request: dict[str, Any]) -> dict[str, Any]:
        if api_key == _API_VERSIONS:
            keys = [{"api_key": key, "min_version": 0, "max_version": newest} for key, newest in self._apis]
            return {"api_keys": keys}
        if api_key == DESCRIBE_QUORUM:
            return self._describe()
        topic = request["topics"][0]
        partition = topic["partitions"][0]
        leader = {"leader_id": self._state.leader_id, "leader_epoch": self._state.leader_epoch}
        address = self._state.addresses.get(self._state.leader_id)
        endpoints = (
            []
            if address is None
            else [{"node_id": self._state.leader_id, "host": address[0], "port": address[1], "rack": None}]
        )
        response = {"error_code": self._leader_error(partition["current_leader_epoch"]), "current_leader": leader}
        if api_key == FETCH:
            response |= {"partition_index": 0, "aborted_transactions": None, "records": b""}
            response |= {
                "high_watermark": self._state.high_watermark,
                "log_start_offset": self._state.snapshot_id.offset,
            }
            if not response["error_code"]:
                response |= self._fetch(partition["fetch_offset"], request["max_bytes"])
            return {"node_endpoints": endpoints, "responses": [{"topic_id": TOPIC_ID, "partitions": [response]}]}
        response |= {"index": 0, **self._snapshot_part(partition["position"], request["max_bytes"])}
        return {"node_endpoints": endpoints, "topics": [{"name": TOPIC, "partitions": [response]}]}

    def _leader_error(self, epoch: int) -> ErrorCode:
        state = self._state
        if epoch < state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > state.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if self._id == state.leader_id else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _fetch(self, offset: int, bytes_max: int) -> dict[str, Any]:
        state = self._state
        if offset < state.snapshot_id.offset:
            return {"snapshot_id": {"end_offset": state.snapshot_id.offset, "epoch": state.snapshot_id.epoch}}
        if state.diverging is not None:
            (epoch, end_offset), state.diverging = state.diverging, None
            return {"diverging_epoch": {"epoch": epoch, "end_offset": end_offset}}
        records = b""
        for batch in state.batches:
            if records and len(records) + len(batch) > bytes_max:
                break
            if next(read_batches(batch)).header.base_offset >= offset:
                records += batch
        return {"records": records}

    def _snapshot_part(self, position: int, bytes_max: int) -> dict[str, Any]:
        content, snapshot_id = self._state.snapshot, self._state.snapshot_id
        return {
            "snapshot_id": {"end_offset": snapshot_id.offset, "epoch": snapshot_id.epoch},
            "size": len(content),
            "position": position,
            "unaligned_records": content[position : position + bytes_max],
        }

    def _describe(self) -> dict[str, Any]:
        state = self._state
        quorum = {
            "partition_index": 0,
            "error_code": 0,
            "leader_id": state.leader_id,
            "leader_epoch": state.leader_epoch,
            "high_watermark": state.high_watermark,
            "current_voters": [{"replica_id": node_id, "log_end_offset": -1} for node_id in state.addresses],
            "observers": [],
            "error_message": None,
        }
        nodes = [
            {"node_id": node_id, "listeners": [{"name": "CONTROLLER", "host": host, "port": port}]}
            for node_id, (host, port) in state.addresses.items()
        ]
        return {"error_message": None, "topics": [{"topic_name": TOPIC, "partitions": [quorum]}], "nodes": nodes}
