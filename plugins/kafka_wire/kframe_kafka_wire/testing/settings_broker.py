"""A fake broker on loopback for DescribeConfigs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress

from kframe.plugin.cluster import Endpoint, Registration
from kframe_kafka_wire.codec import decode_header, decode_request, encode_response


class SettingsBroker:
    """Responds to DescribeConfigs with static settings, and supports nothing else."""

    def __init__(self, values: Mapping[str, str], code: int = 0) -> None:
        """A ``code`` other than 0 refuses every request."""
        self.values, self.code = values, code
        self.asked: list[list[str]] = []
        """The requested keys of each request."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections."""
        self._listener.close()

    def registration(self, broker_id: int = 1) -> Registration:
        """Its registration."""
        return Registration(broker_id, 100 * broker_id, (Endpoint("PLAINTEXT", "127.0.0.1", self.port),))

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, connection.makefile("rb") as stream:
                    self._answer(connection, stream.read(int.from_bytes(stream.read(4), "big")))

    def _answer(self, connection: socket.socket, frame: bytes) -> None:
        header = decode_header(frame)
        (resource,) = decode_request(header, frame)["resources"]
        self.asked.append(resource["configuration_keys"])
        response = {
            "error_code": self.code, "error_message": None, "resource_type": 4, "resource_name": "1",
            "configs": [
                {"name": key, "value": value, "read_only": False, "config_source": 4, "is_sensitive": False,
                 "synonyms": [{"name": key, "value": value, "source": 4}]}
                for key, value in self.values.items()
            ],
        }  # fmt: skip
        connection.sendall(encode_response(32, header.api_version, header.correlation_id, {"results": [response]}))
