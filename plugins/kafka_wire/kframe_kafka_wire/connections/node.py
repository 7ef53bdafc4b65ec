"""A connection to a node of a cluster with the versions of its APIs, and the search for the controller."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kframe.plugin import ConfigError, StoreError
from kframe.plugin.settings import parse_whole
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.listeners.security import ListenerSecurity
from kframe_kafka_wire.protocol.codec import API_NAMES, decode_response, encode_request, newest
from kframe_kafka_wire.protocol.errors import CodecError, PermanentFailure, WireError

CLIENT_ID: Final = "kframe"
METADATA: Final = 3
#: ApiVersions 3, which brokers since 2.4 have, names the finalized features.
_API_VERSIONS: Final = (18, 3)
_SOFTWARE: Final = {"client_software_name": "kframe", "client_software_version": "1"}
#: The feature that every cluster in KRaft mode has finalized, and no cluster in ZooKeeper mode.
_KRAFT_FEATURE: Final = "metadata.version"
#: Time limit of a request, and of the TCP connections to all bootstrap servers together.
REQUEST_TIMEOUT_MS: Final = 30_000
CONNECT_TIMEOUT_MS: Final = 4_000
_REPLY_BYTES_MAX: Final = 512 * 2**20
#: What ends a connection.
CONNECTION_ERRORS: Final = (OSError, WireError, CodecError)


class NoBootstrapServer(StoreError):
    """No bootstrap server could be reached. The text names each with the reason."""


class NodeConnection:
    """A connection to one node, which asks for the versions of its APIs before anything else."""

    def __init__(
        self, target: Target, connect_ms: int = REQUEST_TIMEOUT_MS, *, reply_bytes_max: int = _REPLY_BYTES_MAX
    ) -> None:
        """Connect within ``connect_ms``. Raises OSError, WireError, CodecError, and PermanentFailure for refusals.

        A reply of more than ``reply_bytes_max`` is a WireError.
        """
        self.node_id = -1
        """The id of the controller; -1 on a connection to a bootstrap server."""
        self.features: dict[str, int] = {}
        """The finalized levels of features. A cluster in KRaft mode has ``metadata.version`` among them."""
        self.is_controller_only = False
        """Whether the node is an instance of kframe, which is no broker."""
        self._target = target
        self._correlation = 0
        self._reply_bytes_max = reply_bytes_max
        self._versions: dict[int, tuple[int, int]] = {}
        self._connection = BrokerConnection(target)
        try:
            self._connection.open(REQUEST_TIMEOUT_MS, connect_ms)
            self._read_versions()
        except BaseException:
            self.close()
            raise

    def __str__(self) -> str:
        return str(self._target)

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()

    def version(self, api_key: int) -> int | None:
        """The newest version that the node and kframe both know, or None."""
        min_version, max_version = self._versions.get(api_key, (0, -1))
        return newest(api_key, min_version, max_version)

    @property
    def is_kraft(self) -> bool:
        """Whether the cluster runs in KRaft mode."""
        return _KRAFT_FEATURE in self.features

    @property
    def controllers(self) -> tuple[int, ...]:
        """The id of this node, if it is the controller and no broker."""
        return (self.node_id,) if self.is_controller_only else ()

    def ask(self, api_key: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The response to a request. Raises StoreError if the node does not know the API, else as ``__init__``."""
        version = self.version(api_key)
        if version is None:
            min_version, max_version = self._versions.get(api_key, (0, -1))
            versions = f"versions {min_version} to {max_version}" if max_version >= 0 else "no version"
            raise StoreError(
                f"{self} has {versions} of {API_NAMES.get(api_key, api_key)}, expected one of Kafka 2.4 to 4"
            )
        return self._exchange(api_key, version, fields)

    def _read_versions(self) -> None:
        response = self._exchange(*_API_VERSIONS, _SOFTWARE)
        if response["error_code"]:
            raise WireError(f"error {response['error_code']} to ApiVersions")
        self._versions = {
            entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in response["api_keys"]
        }
        self.is_controller_only = response["is_controller_only"]
        self.features = {entry["name"]: entry["max_version_level"] for entry in response["finalized_features"]}

    def _exchange(self, api_key: int, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
        self._correlation += 1
        request = encode_request(api_key, version, self._correlation, CLIENT_ID, fields)
        reply = self._connection.exchange([request], self._reply_bytes_max, REQUEST_TIMEOUT_MS)
        correlation, response = decode_response(api_key, version, reply)
        if correlation != self._correlation:
            raise WireError(f"a response to request {correlation} instead of {self._correlation}")
        return response


class Bootstrap:
    """Finds the controller through bootstrap servers."""

    def __init__(self, addresses: Sequence[tuple[str, int]], security: ListenerSecurity) -> None:
        """``addresses`` are hosts and ports of some brokers. Raises ConfigError."""
        self.addresses = tuple(addresses)
        self._security = security
        self._credentials = security.credentials()

    @property
    def names(self) -> str:
        """The addresses as in a URL."""
        return ",".join(str(self._target(*address)) for address in self.addresses)

    def to_controller(self) -> NodeConnection:
        """A connection to the controller that the first responding bootstrap server names.

        Brokers in KRaft mode name one of themselves. Raises NoBootstrapServer within five seconds if no server accepts
        a connection, PermanentFailure if none responds and one refuses permanently, else an error of CONNECTION_ERRORS.
        """
        failure: Exception | None = None
        problems, end_s = [], time.monotonic() + CONNECT_TIMEOUT_MS / 1000
        for index, address in enumerate(self.addresses):
            share_ms = int((end_s - time.monotonic()) * 1000) // (len(self.addresses) - index)
            try:
                node = NodeConnection(self._target(*address), max(share_ms, 1))
            except PermanentFailure as error:
                failure = failure if isinstance(failure, PermanentFailure) else error
            except CONNECTION_ERRORS as error:
                problems.append(f"{self._target(*address)} ({_reason(error)})")
            else:
                try:
                    return self._controller_known_to(node)
                except CONNECTION_ERRORS as error:
                    failure = failure if isinstance(failure, PermanentFailure) else error
                finally:
                    node.close()
        raise failure or NoBootstrapServer(f"no bootstrap server responds: {', '.join(problems)}")

    def to_address(self, host: str, port: int) -> NodeConnection:
        """A connection to a broker at its advertised address. Raises PermanentFailure and CONNECTION_ERRORS."""
        return NodeConnection(self._target(host, port), CONNECT_TIMEOUT_MS)

    def _controller_known_to(self, node: NodeConnection) -> NodeConnection:
        response = node.ask(METADATA, {"topics": [], "allow_auto_topic_creation": False})
        controller_id = response["controller_id"]
        addresses = {broker["node_id"]: (broker["host"], broker["port"]) for broker in response["brokers"]}
        if controller_id not in addresses:
            raise WireError(f"{node} knows no controller")
        target = self._target(*addresses[controller_id])
        try:
            controller = NodeConnection(target)
        except PermanentFailure:
            raise
        except CONNECTION_ERRORS as error:
            raise WireError(f"{target}, the address of broker {controller_id} by {node}: {_reason(error)}") from error
        controller.node_id = controller_id
        return controller

    def _target(self, host: str, port: int) -> Target:
        return Target(host, port, self._security.tls, self._credentials, CLIENT_ID)


def bootstrap_addresses(url: str) -> list[tuple[str, int]]:
    """Hosts and ports in ``kafka://HOST:PORT[,HOST:PORT]...``. Raises ConfigError."""
    return [_host_port(address.strip()) for address in url.removeprefix("kafka:").removeprefix("//").split(",")]


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    number = parse_whole(port, 2**16 - 1)
    if not host or number is None:
        raise ConfigError("bootstrap servers", repr(address), "HOST:PORT[,HOST:PORT]...")
    return host.removeprefix("[").removesuffix("]"), number


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
