"""The transport for ``kafka:``: control requests to Kafka brokers over TCP.

The controller's thread encodes requests while it sends a batch. Each broker has a channel with its own thread that
writes them to the socket. UpdateMetadata is encoded once and shared by all brokers; only its first bytes differ. The
queue of a slow broker is merged (``merging.py``).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from kframe.plugin import ConfigError
from kframe.plugin.cluster import ClusterState, Registration, ReplicaState
from kframe.plugin.settings import whole
from kframe.plugin.transport import BrokerQueue, ControlRequests, MayAct, Notify
from kframe.plugin.wire import LATEST, ControlVersions, Encoder, InterBrokerProtocol, endpoint_on
from kframe_kafka_wire.connections.broker import Target
from kframe_kafka_wire.listeners.identity import control_listener, inter_broker_listener, node_of
from kframe_kafka_wire.listeners.security import security_of
from kframe_kafka_wire.records.store import Records
from kframe_kafka_wire.requests.channel import Channel, Timeouts
from kframe_kafka_wire.requests.content import request_contents
from kframe_kafka_wire.requests.merging import BatchBuilder, merge
from kframe_kafka_wire.requests.probes import ClusterId
from kframe_kafka_wire.requests.queued import QueuedRequest

_log = logging.getLogger("kframe.kafka_wire")

#: A queue with fewer partitions is never merged, even if partitions repeat.
QUEUE_PARTITIONS: Final = 10_000
_PROTOCOL: Final = "inter.broker.protocol.version"


class WireTransport:
    """Implements ``ports.Transport``. Everything is configured by Kafka's keys; see ``open_transport``."""

    def __init__(self, config: Mapping[str, str], queue_partitions: int = QUEUE_PARTITIONS) -> None:
        """Raises ConfigError for a key or value that does not fit. Nothing is connected yet."""
        self.node = node_of(config)
        """This controller, named as a live broker in every UpdateMetadata."""
        self._listener = control_listener(config)
        security = security_of(config, self._listener)
        self._tls = security.tls
        if self._tls is not None:
            self._tls.client()  # Detects unusable files at the start.
        self._credentials = security.credentials()
        self._timeouts = Timeouts(
            *(
                whole(1)(f"config key {key}", config.get(key, "30000"))
                for key in ("controller.socket.timeout.ms", "request.timeout.ms")
            )
        )
        text = config.get(_PROTOCOL)
        versions = ControlVersions.of(LATEST if text is None else InterBrokerProtocol.parse(text.strip()))
        self._stop_replica_version = versions.stop_replica
        self._encoder = Encoder(versions, inter_broker_listener(config), others=(self.node.registration,))
        self._queue_partitions = queue_partitions
        self._cluster_id = ClusterId()
        self._ports: tuple[Notify, MayAct] | None = None
        self._channels: dict[int, Channel] = {}
        """By broker id. The mapping is replaced, never changed, because any thread may read it."""
        self._expected: dict[int, tuple[Registration, Channel]] = {}
        """Channels opened ahead of ``connect``, by broker id."""

    def attach_store(self, store: object) -> None:
        """Compare the cluster ids of brokers with ``/cluster/id``, if the store shows its records."""
        self._cluster_id = ClusterId(store if isinstance(store, Records) else None)

    def open(self, notify: Notify, may_act: MayAct) -> None:
        """Save callbacks: channel threads call ``may_act`` before each request and ``notify`` with each response."""
        self._ports = notify, may_act

    def close(self) -> None:
        """Drop every queue and connection. A request in flight is not sent again. Does not wait for brokers."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()
        self._drop_expected()

    def expect(self, registrations: Sequence[Registration]) -> None:
        """Open connections ahead of ``connect``, which uses those of unchanged registrations and closes the others."""
        self._drop_expected()
        ports = self._ports
        if ports is None:
            return
        for registration in registrations:
            with suppress(ConfigError):  # ``connect`` logs the error.
                channel = self._channel(registration, ports, 0)
                self._expected[registration.broker_id] = registration, channel
                channel.start(connect_now=True)

    def _drop_expected(self) -> None:
        expected, self._expected = self._expected, {}
        for _, channel in expected.values():
            channel.close()

    def connect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Give each of these brokers (indexes) its expected channel, or a new channel that connects later.

        A broker without the control listener gets no channel, and an error in the log.
        """
        self.disconnect(cluster, brokers)
        opened, new_channels, ports = {}, [], self._ports
        for index in brokers:
            registration = cluster.brokers.registrations[index]
            if registration is None or ports is None:
                continue
            expected, channel = self._expected.get(registration.broker_id, (None, None))
            if channel is not None and expected == registration:
                del self._expected[registration.broker_id]
                channel.known_topics = len(cluster.topics)
            else:
                try:
                    channel = self._channel(registration, ports, len(cluster.topics))
                except ConfigError as error:
                    _log.error("no requests are sent to broker %d: %s", registration.broker_id, error)
                    continue
                new_channels.append(channel)
            opened[registration.broker_id] = channel
        self._drop_expected()
        self._channels = {**self._channels, **opened}
        for channel in new_channels:
            channel.start()

    def disconnect(self, cluster: ClusterState, brokers: tuple[int, ...]) -> None:
        """Close the channels of these brokers (indexes) and drop their queues. Does not wait for brokers."""
        broker_ids = set(cluster.brokers.ids_of(brokers))
        closed = [channel for broker_id, channel in self._channels.items() if broker_id in broker_ids]
        self._channels = {
            broker_id: channel for broker_id, channel in self._channels.items() if broker_id not in broker_ids
        }
        for channel in closed:
            channel.close()

    def send(self, cluster: ClusterState, requests: ControlRequests) -> None:
        """Encode a batch and queue each request at once, so that brokers read the first while the last are encoded.

        Raises ConfigError and ShapeError as ``kframe.wire.Encoder`` does; nothing of the batch is queued then.
        """
        dropped, reached = Counter[int](), dict[int, tuple[Channel, bool]]()
        for broker, request in self._encoded(cluster, requests):
            broker_id = int(cluster.brokers.ids[broker])
            channel = self._channels.get(broker_id)
            if channel is None or channel.foreign:
                dropped[broker_id] += 1
                continue
            _, slow = reached.setdefault(broker, (channel, channel.weight > self._queue_partitions))
            if slow:
                request.unshare()
            channel.add((request,))
        for broker, (channel, _) in reached.items():
            if self._should_merge(cluster, broker, channel):
                self._merge(cluster, broker, channel, requests)
        for broker_id, count in dropped.items():
            _log.warning("%d requests to broker %d dropped: not connected", count, broker_id)

    @property
    def acknowledges(self) -> bool:
        """Responses to UpdateMetadata name the batch (``ports.Acknowledging``)."""
        return True

    @property
    def channels(self) -> Mapping[int, Channel]:
        """The channels to the brokers that are connected, by id."""
        return self._channels

    def queues(self) -> Mapping[int, BrokerQueue]:
        """The queue of each connected broker. It excludes the request in flight."""
        channels = self._channels
        return {
            broker_id: BrokerQueue(channel.waiting, channel.times)
            for broker_id, channel in channels.items()
            if not channel.foreign
        }

    def _channel(self, registration: Registration, ports: tuple[Notify, MayAct], known_topics: int) -> Channel:
        """A channel that is not started. Raises ConfigError for a broker without the control listener."""
        endpoint, own_id = endpoint_on(registration, self._listener), self.node.registration.broker_id
        target = Target(endpoint.host, endpoint.port, self._tls, self._credentials, str(own_id))
        return Channel(registration, target, self._timeouts, *ports, own_id, known_topics, self._cluster_id.read)

    def _should_merge(self, cluster: ClusterState, broker: int, channel: Channel) -> bool:
        """Whether merging would at least halve a queue.

        A merged queue holds each partition at most once for UpdateMetadata, and each replica of the broker once. A
        queue is merged when it has twice that weight, and twice its weight after the last merge.
        """
        min_weight = max(self._queue_partitions, 2 * channel.merged_weight)
        if channel.weight <= min_weight:
            return False
        partitions = int(cluster.topics.partition_count.sum())
        if channel.weight <= 2 * partitions:
            return False
        p = cluster.partitions
        states = p.replica_states(np.flatnonzero(p.replica == broker))
        replicas = int(np.count_nonzero(states != ReplicaState.NON_EXISTENT))
        return channel.weight > 2 * (partitions + replicas)

    def _encoded(self, cluster: ClusterState, requests: ControlRequests) -> Iterator[tuple[int, QueuedRequest]]:
        """The requests of a batch in order. Each has the index of its broker."""
        encoded = self._encoder.encode(cluster, requests)
        contents = {
            (broker, content.api_key): content
            for broker, content in request_contents(cluster, requests, self._stop_replica_version)
        }
        now, next_row = time.monotonic(), dict[tuple[int, int], int]()
        for request in encoded:
            key = request.broker, request.api_key
            first = next_row.get(key, 0)
            next_row[key] = first + request.partitions
            part = slice(first, first + request.partitions)
            yield (
                request.broker,
                QueuedRequest(
                    requests.controller_epoch,
                    request.api_key,
                    request.api_version,
                    request.chunks,
                    contents[key],
                    part,
                    now,
                    len(cluster.topics),
                ),
            )

    def _merge(self, cluster: ClusterState, broker: int, channel: Channel, requests: ControlRequests) -> None:
        """Replace a broker's queue by the fewest requests with the same effect, from the current columns."""
        waiting = channel.drain()
        contents = list({id(request.content): request.content for request in waiting}.values())
        merged = []
        builder = BatchBuilder(broker, requests.controller_id, requests.controller_epoch)
        for part in merge(cluster, builder, contents, channel.known_topics):
            for receiver, outgoing in self._encoded(part.cluster, part.requests):
                if receiver == broker:
                    outgoing.content = part.original(outgoing.content)
                    outgoing.queued, outgoing.topics = waiting[0].queued, len(cluster.topics)
                    merged.append(outgoing)
        channel.add(merged)
        channel.merged_weight = sum(request.weight for request in merged)
        _log.info("broker %d is slow: %d requests merged into %d", channel.broker_id, len(waiting), len(merged))


def open_transport(url: str, config: Mapping[str, str]) -> WireTransport:
    """The transport for ``kafka:``. ``config`` are values by Kafka's keys. Raises ConfigError."""
    if url.partition(":")[2].strip("/"):
        raise ConfigError("transport URL", repr(url), "kafka: alone; brokers' registrations have their addresses")
    return WireTransport(config)
