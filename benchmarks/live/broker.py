"""A broker that responds to control requests with success, over Kafka's protocol."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import sys
import threading
import time

#: On Linux what is received so goes nowhere (tcp(7)); ``recv_into`` says how much it was.
DROPPED = socket.MSG_TRUNC if sys.platform == "linux" else 0

METADATA, LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, API_VERSIONS = 3, 4, 5, 6, 18
#: The least successful body for each control request, by (api key, flexible version?).
SUCCESS = {
    (LEADER_AND_ISR, True): b"\0\0\1\0",
    (LEADER_AND_ISR, False): b"\0\0\0\0\0\0",
    (STOP_REPLICA, True): b"\0\0\1\0",
    (STOP_REPLICA, False): b"\0\0\0\0\0\0",
    (UPDATE_METADATA, True): b"\0\0\0",
    (UPDATE_METADATA, False): b"\0\0",
}
FIRST_FLEXIBLE = {LEADER_AND_ISR: 4, STOP_REPLICA: 2, UPDATE_METADATA: 6, API_VERSIONS: 3}
#: Metadata v2 without brokers, cluster id and topics; a controller without a cluster id to compare accepts it.
NO_METADATA = struct.pack(">ihii", 0, -1, -1, 0)
HIGHEST = {LEADER_AND_ISR: 7, STOP_REPLICA: 4, UPDATE_METADATA: 8, API_VERSIONS: 3}


class StandInBroker:
    """A measuring sink, not a broker model: it discards the bytes of control requests and responds with success.

    It records how many bytes arrived, and when the last did. The model of the wire, ``FakeBroker``, decodes every
    request, and the benchmark would then measure that.
    """

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.last_byte_at = 0.0
        self.bytes_received = 0
        self.requests: dict[int, int] = {}
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._accept_thread = threading.Thread(target=self._accept, daemon=True)
        self._accept_thread.start()

    def registration(self) -> bytes:
        """What stands in its node below /brokers/ids."""
        endpoint = f"PLAINTEXT://127.0.0.1:{self.port}"
        return json.dumps(
            {
                "version": 5,
                "host": "127.0.0.1",
                "port": self.port,
                "endpoints": [endpoint],
                "jmx_port": -1,
                "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
                "rack": f"r{self.broker_id % 3}",
                "features": {},
                "timestamp": str(int(time.time() * 1000)),
            }
        ).encode()

    def close(self) -> None:
        """Accept no further connection. Those that are open end with their peers."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._accept_thread.join()
        self._server.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        scratch = bytearray(1 << 20)
        with connection, contextlib.suppress(OSError):
            while True:
                (length,) = struct.unpack(">i", self._read(connection, 4))
                key, version, correlation = struct.unpack(">hhi", self._read(connection, 8))
                remaining = length - 8
                while remaining:
                    received = connection.recv_into(scratch, min(remaining, len(scratch)), DROPPED)
                    if not received:
                        return
                    remaining -= received
                self.last_byte_at = time.time()
                self.bytes_received += length + 4
                self.requests[key] = self.requests.get(key, 0) + 1
                connection.sendall(self._response(key, version, correlation))

    @staticmethod
    def _read(connection: socket.socket, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = connection.recv(size - len(data))
            if not part:
                raise OSError("closed")
            data += part
        return data

    @staticmethod
    def _response(key: int, version: int, correlation: int) -> bytes:
        if key == API_VERSIONS:  # its response header is never flexible
            if version >= FIRST_FLEXIBLE[key]:
                ranges = b"".join(struct.pack(">hhhb", k, 0, v, 0) for k, v in HIGHEST.items())
                body = struct.pack(">hb", 0, len(HIGHEST) + 1) + ranges + struct.pack(">ib", 0, 0)
            else:
                ranges = b"".join(struct.pack(">hhh", k, 0, v) for k, v in HIGHEST.items())
                body = struct.pack(">hi", 0, len(HIGHEST)) + ranges + (struct.pack(">i", 0) if version else b"")
            payload = struct.pack(">i", correlation) + body
        elif key == METADATA:
            payload = struct.pack(">i", correlation) + NO_METADATA
        else:
            flexible = version >= FIRST_FLEXIBLE[key]
            payload = struct.pack(">i", correlation) + (b"\0" if flexible else b"") + SUCCESS[key, flexible]
        return struct.pack(">i", len(payload)) + payload
