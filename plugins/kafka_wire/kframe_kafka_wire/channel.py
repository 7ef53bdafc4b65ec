"""The channel to one registration of a broker: a queue, a thread, a connection, and one request in flight.

Requests go out in order. A request is sent until it is answered, over as many connections as that takes, and nothing
behind it goes first; when the registration ends, the role is lost or the transport closes, what was not answered is
dropped, never sent to another registration (Kafka 3.9 ``RequestSendThread``; ``wire.md`` section 4). Errors in an
answer are the controller's to judge and cause no resend.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kframe.plugin.transport import MayAct, Notify, Samples
from kframe.plugin.wire import header_version, request_header, size_prefix
from kframe_kafka_wire.answers import Asked, read_answer
from kframe_kafka_wire.connection import Connection, Target
from kframe_kafka_wire.probes import cluster_id_of, serves_a_controller
from kframe_kafka_wire.told import UPDATE_METADATA, Told

_log = logging.getLogger("kframe.kafka_wire")

_PAUSE_MS: Final = 50
_PAUSE_MOST_MS: Final = 1000
#: Failures after which a registered broker is asked whether it is in KRaft mode.
_FEW: Final = 3
#: How often a request that waits for the role asks whether it may leave.
_ROLE_LOOK_S: Final = 0.02
#: How long each step may take by which a broker tells that it is in KRaft mode.
_PROBE_MS: Final = 3_000
#: Connections refused one after another, over a second and a half, by a broker that has just registered.
_EARLY: Final = 5
#: What a request weighs beside the partitions that it tells of.
REQUEST_WEIGHT: Final[int] = 16


def pause_ms(failures: int) -> int:
    """How long to wait after a failure that had so many ``failures`` before it: brokers register before they listen, so
    the first pauses are short; none is longer than a second."""
    return min(_PAUSE_MS << min(failures, 10), _PAUSE_MOST_MS)


@dataclass(slots=True, eq=False)
class Outgoing:
    """A request in the queue."""

    controller_epoch: int
    api_key: int
    api_version: int
    chunks: tuple[bytes | memoryview, ...]
    told: Told
    part: slice
    """Which rows of ``told`` this request tells."""
    queued: float
    topics: int
    """How many topics there had ever been when it was made: it tells of none that came later."""

    @property
    def weight(self) -> int:
        """How much it holds on to, counted in partitions."""
        told: int = self.part.stop - self.part.start
        return REQUEST_WEIGHT + told

    def alone(self) -> None:
        """Stop sharing memory with the requests for other brokers, unless it is the very same that these have."""
        if self.told.api_key != UPDATE_METADATA:
            self.chunks = tuple(bytes(chunk) for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long things may take, in milliseconds: making a connection, and a request until it is answered."""

    connect_ms: int = 30_000
    request_ms: int = 30_000


class Channel:
    """Everything about one registration of one broker. ``start`` begins, ``close`` ends it for good and waits for
    nobody: from then on nothing is sent and nothing notified."""

    def __init__(
        self, broker_id: int, target: Target, timeouts: Timeouts, notify: Notify, may_act: MayAct, controller_id: int,
        heard_topics: int, cluster_id: Callable[[], str | None],
    ) -> None:  # fmt: skip
        """``may_act`` is called right before each request leaves; while it returns False, the request waits. The broker
        may know the first ``heard_topics`` topics already. ``cluster_id`` returns the id of this cluster, or None while
        it is unknown."""
        self.broker_id = broker_id
        self.times = Samples()
        """How long requests that were taken had waited."""
        self.merged_weight = 0
        """What the queue weighed when it was last merged."""
        self.foreign = False
        """Whether the broker is of another cluster: this registration is sent nothing any more."""
        self.heard_topics = heard_topics
        """Topics (indexes) from here on the broker has never heard of: what tells of them waits, or was merged."""
        self._target = target
        self._timeouts = timeouts
        self._notify = notify
        self._may_act = may_act
        self._cluster_id = cluster_id
        self._waiting: deque[Outgoing] = deque()
        self._weight = 0
        self._changed = threading.Condition()
        self._closed = False
        self._ahead = False
        self._connection: Connection | None = None
        self._cut_since: float | None = None
        """When the connection was cut (``time.monotonic``); None while it is not."""
        self._controller_id = controller_id
        self._correlation_id = 0
        self._served = False
        """Whether a request was ever answered."""
        self._in_flight: Outgoing | None = None
        self._waits_for_role = False
        name = f"Controller-{controller_id}-to-broker-{broker_id}-send-thread"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def waiting(self) -> int:
        """Requests that wait, the one in flight not counted."""
        return len(self._waiting)

    @property
    def weight(self) -> int:
        """How much they hold on to, counted in partitions."""
        return self._weight

    @property
    def idle(self) -> bool:
        """Whether everything that was added has been answered, and told."""
        with self._changed:
            return not self._waiting and self._in_flight is None

    @property
    def waits_for_role(self) -> bool:
        """Whether a request is held back because it is uncertain who is controller."""
        with self._changed:
            return self._waits_for_role

    def start(self, *, ahead: bool = False) -> None:
        """Begin to send; ``ahead``: connect before there is anything to send."""
        self._ahead = ahead
        self._thread.start()

    def close(self) -> None:
        """Drop the queue and the connection; a request in flight is not sent again, and its answer told to nobody."""
        with self._changed:
            dropped = 0 if self._closed else self._undelivered
            self._closed = True
            self._clear()
            connection = self._connection
            self._changed.notify_all()
        if dropped and self._cut_since is not None:
            _log.info(
                "%s gives up its connection to broker %s, %.3f s after it was cut: %d requests are dropped",
                self._prefix, self._node, time.monotonic() - self._cut_since, dropped,
            )  # fmt: skip
        if connection is not None:
            connection.shut()

    def join(self, timeout_s: float) -> bool:
        """Whether the thread has ended, within that time; for tests."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def add(self, requests: Iterable[Outgoing]) -> None:
        """Queue requests behind all others."""
        with self._changed:
            if not self._closed:
                for request in requests:
                    self._waiting.append(request)
                    self._weight += request.weight
                self._changed.notify_all()

    def take_back(self) -> list[Outgoing]:
        """Take out what waits, to put something else in its place; only by the thread that adds."""
        with self._changed:
            taken = list(self._waiting)
            self._clear()
        return taken

    def _clear(self) -> None:
        self._waiting.clear()
        self._weight = 0

    # -- in the channel's own thread

    def _run(self) -> None:
        try:
            if self._ahead:
                self._connect_ahead()
            while (request := self._next()) is not None:
                self._deliver(request)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _connect_ahead(self) -> None:
        """Connect if that can be done; if not, the first request tries again, and tells why not."""
        try:
            self._connected()
        except Exception:  # as in ``_deliver``
            self._disconnect()

    def _next(self) -> Outgoing | None:
        with self._changed:
            self._in_flight = None
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            request = self._in_flight = self._waiting.popleft()
            self._weight -= request.weight
            self.heard_topics = max(self.heard_topics, request.topics)
        self.times.add((time.monotonic() - request.queued) * 1000)
        return request

    def _deliver(self, request: Outgoing) -> None:
        """Send until it is answered, or the channel is closed."""
        failures = 0
        while not self._closed:
            try:
                connection = self._connected()
                if not self._may_act():
                    self._await_role()
                    continue
                self._exchange(connection, request)
                self._report_healed()
                self._served = True
                return
            except Exception as problem:  # the controller's word must get through, whatever a broker does to us
                excused = self._is_excused(problem, failures)
                self._disconnect()
                self._report_cut(problem, excused=excused)
                self._check_mode(problem, failures)
            with self._changed:
                self._changed.wait_for(lambda: self._closed, pause_ms(failures) / 1000)
            failures += 1

    def _await_role(self) -> None:
        """Return when the role is certain again, or the channel is closed because it is lost."""
        _log.info("requests to broker %d wait: the role may be lost", self.broker_id)
        with self._changed:
            self._waits_for_role = True
            while not self._closed and not self._may_act():
                self._changed.wait_for(lambda: self._closed, _ROLE_LOOK_S)
            self._waits_for_role = False

    def _exchange(self, connection: Connection, request: Outgoing) -> None:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFF_FFFF
        asked = Asked(
            self.broker_id, request.controller_epoch, request.api_key, request.api_version, self._correlation_id,
            request.told, request.part,
        )  # fmt: skip
        header = request_header(
            header_version(request.api_key, request.api_version), request.api_key, request.api_version,
            self._correlation_id, self._target.client_id,
        )  # fmt: skip
        first, *rest = request.chunks
        size = size_prefix(len(header) + sum(len(chunk) for chunk in request.chunks))
        # What is small goes out as one piece, so that TLS makes one record of it.
        chunks = [b"".join((size, header, first)), *rest]
        event = read_answer(asked, connection.exchange(chunks, asked.reply_bytes_max, self._timeouts.request_ms))
        with self._changed:
            if event is not None and not self._closed:
                self._notify(event)

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = Connection(self._target)
            with self._changed:
                self._connection = connection
                if self._closed:
                    connection.shut()
            connection.open(self._timeouts.connect_ms)
            self._check_cluster(connection)
        return self._connection

    def _disconnect(self) -> None:
        with self._changed:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _check_cluster(self, connection: Connection) -> None:
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
                "broker %d at %s is sent nothing until it registers anew: found cluster %s, expected "
                "cluster %s (/cluster/id)",
                self.broker_id, self._target, actual, expected,
            )  # fmt: skip
        raise ConnectionAbortedError("a broker of another cluster")

    def _check_mode(self, problem: Exception, failures: int) -> None:
        """Name a broker in KRaft mode, once for each request that it closes the connection on."""
        if self._closed or failures != _FEW or not isinstance(problem, ConnectionResetError):
            return
        if serves_a_controller(self._target, _PROBE_MS) is False:
            _log.warning(
                "broker %d at %s is in KRaft mode: ApiVersions has no LeaderAndIsr, expected a ZooKeeper-mode broker "
                "of this cluster; the registration /brokers/ids/%d leads to another process",
                self.broker_id, self._target, self.broker_id,
            )  # fmt: skip

    def _is_excused(self, problem: Exception, failures: int) -> bool:
        """Whether a failure is no cut: a broker closes a connection that was idle for too long, and registers before it
        listens."""
        if self._served:
            return failures == 0 and self._connection is not None and isinstance(problem, ConnectionError)
        return failures < _EARLY and isinstance(problem, ConnectionRefusedError)

    def _report_cut(self, problem: Exception, *, excused: bool) -> None:
        """Log the first failure after a success (Kafka 3.9 ``RequestSendThread.brokerReady``)."""
        level = logging.DEBUG if excused or self._cut_since is not None else logging.WARNING
        if not self._closed:
            _log.log(
                level, "%s's connection to broker %s is cut: %s (%s); %d requests wait", self._prefix, self._node,
                problem, type(problem).__name__, self._undelivered,
            )  # fmt: skip
        if not excused and self._cut_since is None:
            self._cut_since = time.monotonic()

    def _report_healed(self) -> None:
        """Log that requests get through again."""
        if self._cut_since is not None and not self._closed:
            _log.info(
                "%s connected to %s again for sending state change requests, after %.3f s; %d requests wait",
                self._prefix, self._node, time.monotonic() - self._cut_since, self.waiting,
            )  # fmt: skip
        self._cut_since = None

    @property
    def _undelivered(self) -> int:
        """Requests that wait, and the one in flight."""
        return self.waiting + (self._in_flight is not None)

    @property
    def _prefix(self) -> str:
        own = self._controller_id
        return f"[RequestSendThread controllerId={own}] Controller {own}"

    @property
    def _node(self) -> str:
        return f"{self._target} (id: {self.broker_id})"
