"""Static broker settings that ZooKeeper does not have, such as the partition count of internal topics.

They are read by DescribeConfigs on the inter-broker listener, as the controller's own principal. The request does not
name the client that needs a setting.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kframe.plugin import KframeError
from kframe.plugin.cluster import Registration
from kframe.plugin.wire import endpoint_on
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.listeners.identity import inter_broker_listener
from kframe_kafka_wire.listeners.security import security_of
from kframe_kafka_wire.protocol.codec import decode_response, encode_request

_log = logging.getLogger("kframe.kafka_wire")

#: DescribeConfigs in a version of all brokers since 1.1, and the resource type of brokers.
_DESCRIBE: Final = 32, 1
_BROKER: Final = 4
_REPLY_BYTES_MAX: Final = 1 << 20
_TIMEOUT_MS: Final = 5_000
#: Source of a value in a broker's server.properties (``DescribeConfigsResponse.ConfigSource``).
_STATIC: Final = 4
#: Seconds without a request after a failure: clients retry ten times a second.
_RETRY_BACKOFF_S: Final = 5.0


class BrokerSettings:
    """Reads settings of brokers, one request at a time."""

    def __init__(self, config: Mapping[str, str], client_id: str) -> None:
        """``config`` has the controller's own settings by Kafka's keys."""
        self._config = config
        self._client_id = client_id
        self._request_lock = asyncio.Lock()
        self._failed_s = float("-inf")
        self._static: tuple[tuple[int, int], dict[str, str]] | None = None
        """The broker id and epoch of the last ``read_static``. Also its result."""

    async def read_static(self, brokers: Sequence[Registration], keys: Sequence[str]) -> dict[str, str]:
        """The values of these keys in the server.properties of the live broker with the lowest id.

        They are read once for each registration of that broker, always with the same ``keys``. While it does not
        answer, the last result is returned, or an empty mapping.
        """
        async with self._request_lock:
            now = asyncio.get_running_loop().time()
            broker = min(brokers, key=lambda broker: broker.broker_id, default=None)
            last_values = {} if self._static is None else self._static[1]
            if broker is None or now - self._failed_s < _RETRY_BACKOFF_S:
                return last_values
            registration = broker.broker_id, broker.broker_epoch
            if self._static is not None and self._static[0] == registration:
                return last_values
            try:
                body = await asyncio.to_thread(self._describe_configs, broker, keys)
                self._static = registration, _static_values(body)
            except (OSError, KframeError) as error:
                self._failed_s = now
                _log.warning(
                    "topic settings lack the defaults of broker %d, which does not respond: %s", broker.broker_id, error
                )
                return last_values
            return self._static[1]

    async def read(self, brokers: Sequence[Registration], keys: Sequence[str]) -> dict[str, str]:
        """The values of these keys at one of ``brokers``; empty if it does not answer."""
        async with self._request_lock:
            now = asyncio.get_running_loop().time()
            if not brokers or now - self._failed_s < _RETRY_BACKOFF_S:
                return {}
            broker = random.choice(brokers)
            try:
                return _values(await asyncio.to_thread(self._describe_configs, broker, keys))
            except (OSError, KframeError) as error:
                self._failed_s = now
                _log.warning("broker %d does not return its %s: %s", broker.broker_id, ", ".join(keys), error)
                return {}

    def _describe_configs(self, broker: Registration, keys: Sequence[str]) -> Mapping[str, Any]:
        listener = inter_broker_listener(self._config)
        security, endpoint = security_of(self._config, listener), endpoint_on(broker, listener)
        connection = BrokerConnection(
            Target(endpoint.host, endpoint.port, security.tls, security.credentials(), self._client_id)
        )
        resource = {"resource_type": _BROKER, "resource_name": str(broker.broker_id), "configuration_keys": list(keys)}
        request = encode_request(*_DESCRIBE, 1, self._client_id, {"resources": [resource], "include_synonyms": True})
        try:
            connection.open(_TIMEOUT_MS)
            _, body = decode_response(*_DESCRIBE, connection.exchange([request], _REPLY_BYTES_MAX, _TIMEOUT_MS))
        finally:
            connection.close()
        return body


def _values(body: Mapping[str, Any]) -> dict[str, str]:
    """Values by name. Raises OSError for an error response."""
    return {entry["name"]: entry["value"] for entry in _entries(body) if entry["value"]}


def _static_values(body: Mapping[str, Any]) -> dict[str, str]:
    """Values of the broker's server.properties by name. Raises OSError for an error response."""
    synonyms = (synonym for entry in _entries(body) for synonym in entry["synonyms"])
    return {
        synonym["name"]: synonym["value"] for synonym in synonyms if synonym["source"] == _STATIC and synonym["value"]
    }


def _entries(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    for result in body["results"]:
        if result["error_code"]:
            raise PermissionError(f"code {result['error_code']}, {result['error_message']}")
    return [entry for result in body["results"] for entry in result["configs"]]
