"""The channel to one registration of a broker: a queue, a thread, a connection, and one request in flight.

Requests are sent in order. A request is sent again, over new connections, until it is answered; later requests wait
(Kafka 3.9 ``RequestSendThread``). When the registration ends, the role is lost or the transport closes, unanswered
requests are dropped and never sent to another registration. Error codes in a response cause no resend.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kframe.plugin.cluster import Registration
from kframe.plugin.transport import MayAct, Notify, Samples
from kframe.plugin.wire import header_version, request_header, size_prefix
from kframe_kafka_wire.connections.broker import BrokerConnection, Target
from kframe_kafka_wire.requests.probes import cluster_id_of, serves_a_controller
from kframe_kafka_wire.requests.queued import QueuedRequest
from kframe_kafka_wire.requests.responses import PendingRequest, read_response

_log = logging.getLogger("kframe.kafka_wire")

_RETRY_BACKOFF_MS: Final = 50
_RETRY_BACKOFF_MAX_MS: Final = 1000
#: Number of failures of a request after which a broker's ApiVersions is checked.
_FAILURES_BEFORE_PROBE: Final = 3
#: Interval at which a waiting request checks the role.
_ROLE_CHECK_S: Final = 0.02
#: Timeout of each step of the ApiVersions check.
_PROBE_TIMEOUT_MS: Final = 3_000
#: Refused connections, over 1.5 seconds, after which a new registration counts as unreachable.
_EXPECTED_REFUSALS: Final = 5


def retry_backoff_ms(failures: int) -> int:
    """Milliseconds to wait after a failure that follows ``failures`` others: 50, doubled each time, at most 1,000.

    The first pauses are short because brokers register before they listen.
    """
    return min(_RETRY_BACKOFF_MS << min(failures, 10), _RETRY_BACKOFF_MAX_MS)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Timeouts in milliseconds: of connecting, and of a request until its response."""

    connect_ms: int = 30_000
    request_ms: int = 30_000


class Channel:
    """Sends requests to one registration of one broker, from ``start`` to ``close``.

    After ``close``, which does not wait, nothing is sent and no event is notified.
    """

    def __init__(
        self,
        registration: Registration,
        target: Target,
        timeouts: Timeouts,
        notify: Notify,
        may_act: MayAct,
        controller_id: int,
        known_topics: int,
        cluster_id: Callable[[], str | None],
    ) -> None:
        """``may_act`` is called right before each request leaves; while it returns False, the request waits. The broker
        may know the first ``known_topics`` topics already. ``cluster_id`` returns the id of this cluster, or None while
        it is unknown."""
        self.broker_id = registration.broker_id
        self.broker_epoch = registration.broker_epoch
        self.times = Samples()
        """Queue times of requests."""
        self.merged_weight = 0
        """Weight of the queue after the last merge."""
        self.foreign = False
        """Whether the broker is of another cluster: this registration gets no further requests."""
        self.known_topics = known_topics
        """The first topic index that no sent request has named."""
        self._target = target
        self._timeouts = timeouts
        self._notify = notify
        self._may_act = may_act
        self._cluster_id = cluster_id
        self._queue: deque[QueuedRequest] = deque()
        self._weight = 0
        self._changed = threading.Condition()
        self._closed = False
        self._connect_now = False
        self._connection: BrokerConnection | None = None
        self._cut_since: float | None = None
        """When the connection was cut (``time.monotonic``). None while it is not."""
        self._controller_id = controller_id
        self._correlation_id = 0
        self._served = False
        """Whether any request was answered."""
        self._in_flight: QueuedRequest | None = None
        self._waits_for_role = False
        name = f"Controller-{controller_id}-to-broker-{registration.broker_id}-send-thread"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def waiting(self) -> int:
        """Requests in the queue, without the one in flight."""
        return len(self._queue)

    @property
    def weight(self) -> int:
        """The weight of the queue, in partitions."""
        return self._weight

    @property
    def idle(self) -> bool:
        """Whether every added request is answered. Responses are passed on."""
        with self._changed:
            return not self._queue and self._in_flight is None

    @property
    def waits_for_role(self) -> bool:
        """Whether a request waits because the role is uncertain."""
        with self._changed:
            return self._waits_for_role

    def start(self, *, connect_now: bool = False) -> None:
        """Start the thread. ``connect_now``: connect before there is a request."""
        self._connect_now = connect_now
        self._thread.start()

    def close(self) -> None:
        """Drop the queue and the connection. A request in flight is not sent again, and its response is ignored."""
        with self._changed:
            dropped = 0 if self._closed else self._undelivered
            self._closed = True
            self._clear()
            connection = self._connection
            self._changed.notify_all()
        if dropped and self._cut_since is not None:
            _log.info(
                "%s gives up its connection to broker %s, %.3f s after it was cut: %d requests are dropped",
                self._prefix,
                self._node,
                time.monotonic() - self._cut_since,
                dropped,
            )
        if connection is not None:
            connection.abort()

    def join(self, timeout_s: float) -> bool:
        """Whether the thread ends within that time. For tests."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def add(self, requests: Iterable[QueuedRequest]) -> None:
        """Queue requests behind all others."""
        with self._changed:
            if not self._closed:
                for request in requests:
                    self._queue.append(request)
                    self._weight += request.weight
                self._changed.notify_all()

    def drain(self) -> list[QueuedRequest]:
        """Take all requests out of the queue, for merging. Only by the thread that adds."""
        with self._changed:
            drained = list(self._queue)
            self._clear()
        return drained

    def _clear(self) -> None:
        self._queue.clear()
        self._weight = 0

    # -- in the channel's own thread

    def _run(self) -> None:
        try:
            if self._connect_now:
                self._connect_early()
            while (request := self._next()) is not None:
                self._deliver(request)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _connect_early(self) -> None:
        """Connect if possible. After a failure the first request tries again and logs it."""
        try:
            self._connected()
        except Exception:  # As in ``_deliver``.
            self._disconnect()

    def _next(self) -> QueuedRequest | None:
        with self._changed:
            self._in_flight = None
            while not self._queue and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            request = self._in_flight = self._queue.popleft()
            self._weight -= request.weight
            self.known_topics = max(self.known_topics, request.topics)
        self.times.add((time.monotonic() - request.queued) * 1000)
        return request

    def _deliver(self, request: QueuedRequest) -> None:
        """Send a request until it is answered or the channel is closed."""
        failures, is_mode_known = 0, False
        while not self._closed:
            try:
                connection = self._connected()
                if not self._may_act():
                    self._await_role()
                    continue
                self._exchange(connection, request)
                self._log_healed()
                self._served = True
                return
            except Exception as problem:  # The request must be delivered after any error.
                is_expected = self._is_expected(problem, failures)
                self._disconnect()
                self._log_cut(problem, is_expected=is_expected)
                if failures >= _FAILURES_BEFORE_PROBE and not is_mode_known:
                    is_mode_known = self._check_mode(problem)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, retry_backoff_ms(failures) / 1000)
            failures += 1

    def _await_role(self) -> None:
        """Wait until the role is certain again, or the channel is closed."""
        _log.info("requests to broker %d wait: the role may be lost", self.broker_id)
        with self._changed:
            self._waits_for_role = True
            while not self._closed and not self._may_act():
                self._changed.wait_for(lambda: self._closed, _ROLE_CHECK_S)
            self._waits_for_role = False

    def _exchange(self, connection: BrokerConnection, request: QueuedRequest) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        pending = PendingRequest(
            self.broker_id,
            self.broker_epoch,
            request.controller_epoch,
            request.api_key,
            request.api_version,
            self._correlation_id,
            request.content,
            request.part,
        )
        header = request_header(
            header_version(request.api_key, request.api_version),
            request.api_key,
            request.api_version,
            self._correlation_id,
            self._target.client_id,
        )
        first, *remaining = request.chunks
        size = size_prefix(len(header) + sum(len(chunk) for chunk in request.chunks))
        # Small chunks are joined into one TLS record.
        chunks = [b"".join((size, header, first)), *remaining]
        event = read_response(pending, connection.exchange(chunks, pending.reply_bytes_max, self._timeouts.request_ms))
        with self._changed:
            if event is not None and not self._closed:
                self._notify(event)

    def _connected(self) -> BrokerConnection:
        if self._connection is None:
            connection = BrokerConnection(self._target)
            with self._changed:
                self._connection = connection
                if self._closed:
                    connection.abort()
            connection.open(self._timeouts.connect_ms)
            self._check_cluster(connection)
        return self._connection

    def _disconnect(self) -> None:
        with self._changed:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _check_cluster(self, connection: BrokerConnection) -> None:
        """Close the channel for good if the broker belongs to another cluster, which would apply our requests.

        Each connection is checked: an address may pass to another process before the registration ends. Raises OSError.
        """
        expected = self._cluster_id()
        if expected is None:
            return
        actual = cluster_id_of(connection, self._target.client_id, self._timeouts.request_ms)
        if actual is None or actual == expected:
            return
        with self._changed:
            closed, self._closed, self.foreign = self._closed, True, True
            self._clear()
        if not closed:
            _log.error(
                "no requests are sent to broker %d at %s until it registers again: found cluster %s, expected "
                "cluster %s (/cluster/id)",
                self.broker_id,
                self._target,
                actual,
                expected,
            )
        raise ConnectionAbortedError("a broker of another cluster")

    def _check_mode(self, problem: Exception) -> bool:
        """Log a broker in KRaft mode that closes the connection on a request. Returns whether its mode is known.

        A broker that is starting may respond too late. The next failure checks it again.
        """
        if self._closed or not isinstance(problem, ConnectionResetError):
            return False
        serves_controller = serves_a_controller(self._target, _PROBE_TIMEOUT_MS)
        if serves_controller is False:
            _log.warning(
                "broker %d at %s is in KRaft mode: ApiVersions has no LeaderAndIsr, expected a ZooKeeper-mode broker "
                "of this cluster; another process has the address in /brokers/ids/%d",
                self.broker_id,
                self._target,
                self.broker_id,
            )
        return serves_controller is not None

    def _is_expected(self, problem: Exception, failures: int) -> bool:
        """Whether a failure is expected: brokers close idle connections, and register before they listen."""
        if self._served:
            return failures == 0 and self._connection is not None and isinstance(problem, ConnectionError)
        return failures < _EXPECTED_REFUSALS and isinstance(problem, ConnectionRefusedError)

    def _log_cut(self, problem: Exception, *, is_expected: bool) -> None:
        """Log the first failure after a success (Kafka 3.9 ``RequestSendThread.brokerReady``)."""
        level = logging.DEBUG if is_expected or self._cut_since is not None else logging.WARNING
        if not self._closed:
            _log.log(
                level,
                "%s's connection to broker %s is cut: %s (%s); %d requests wait",
                self._prefix,
                self._node,
                problem,
                type(problem).__name__,
                self._undelivered,
            )
        if not is_expected and self._cut_since is None:
            self._cut_since = time.monotonic()

    def _log_healed(self) -> None:
        if self._cut_since is not None and not self._closed:
            _log.info(
                "%s connected to %s again for sending state change requests, after %.3f s; %d requests wait",
                self._prefix,
                self._node,
                time.monotonic() - self._cut_since,
                self.waiting,
            )
        self._cut_since = None

    @property
    def _undelivered(self) -> int:
        """Requests that wait, and the one in flight."""
        return self.waiting + (self._in_flight is not None)

    @property
    def _prefix(self) -> str:
        controller_id = self._controller_id
        return f"[RequestSendThread controllerId={controller_id}] Controller {controller_id}"

    @property
    def _node(self) -> str:
        return f"{self._target} (id: {self.broker_id})"
