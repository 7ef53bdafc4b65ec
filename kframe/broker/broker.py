"""The broker: what it is sent, what it sends, and what befalls it (``spec/broker-partition.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from kframe.broker.config import BrokerConfig
from kframe.broker.messages import Request, Response
from kframe.broker.outgoing import Outgoing, Reply
from kframe.model.events import TopicPartition


class BrokerState(Enum):
    """Whether a broker runs."""

    DOWN = "down"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting down"


class Broker:
    """One broker. The world calls it and carries what it sends; it does nothing by itself.

    ::

        broker = Broker(1)
        broker.start(broker_epoch, now)
        response = broker.handle(request, now)     # LeaderAndIsr, Fetch, Produce...; None: later or never
        for out in broker.tick(now):               # after every call, and at broker.wakes_at
            ...                                    # carry out.message to out.peer; bring its answer back:
        broker.answered(out.number, reply, now)    # reply None: no answer came, or the connection broke

    What a broker has stored (logs, checkpoints of high watermarks) outlasts ``crash``; everything else does not. All
    times are milliseconds of the world's clock and never go back.
    """

    def __init__(self, broker_id: int, rack: str | None = None, config: BrokerConfig | None = None) -> None:
        """A broker that is down, with empty disks."""
        self.broker_id = broker_id
        self.rack = rack
        self.config = config or BrokerConfig()
        self.state = BrokerState.DOWN
        self.broker_epoch = -1
        """Of its present registration."""
        self.controller_epoch = 0
        """The highest that it has been shown since it started."""
        self.wakes_at = float("inf")
        """When ``tick`` is due next, if nothing else happens first."""

    def start(self, broker_epoch: int, now: float) -> None:
        """Come up, registered under ``broker_epoch``, with the logs of all directories that are not dead."""

    def reregister(self, broker_epoch: int) -> None:
        """The session with storage expired, and the broker registered anew; it goes on with all that it knows."""

    def crash(self, now: float, lost: Mapping[TopicPartition, int] | None = None) -> None:
        """End as by kill -9. ``lost`` says how many records at a log's end were not on disk (power failure)."""

    def shut_down(self, now: float) -> None:
        """Begin a controlled shutdown; the broker is down when it sends CloseSession."""

    def handle(self, request: Request, now: float) -> Response | None:
        """The answer to a request; None if it comes later as an Outgoing, or never. Only while the broker runs."""
        raise NotImplementedError

    def answered(self, number: int, reply: Reply | None, now: float) -> None:
        """What came back for the Outgoing of this number; None: nothing will. A number that nobody waits for (an
        answer that came twice, or to a broker that has been down since) is passed over."""

    def tick(self, now: float) -> list[Outgoing]:
        """Do what is due, and hand over all that is to be sent since the last call."""
        return []

    def configure_topic(self, topic: str, min_insync_replicas: int | None) -> None:
        """A topic's min.insync.replicas; None: the broker's own."""

    def fail_log_dir(self, log_dir: str, now: float) -> None:
        """A log directory dies; with the last one the broker halts. It stays dead until ``replace_log_dir``."""

    def replace_log_dir(self, log_dir: str) -> None:
        """Put an empty disk where a log directory was, of a broker that is down."""

    def gauges(self, now: float) -> dict[str, float]:
        """What ``kafka.server:type=ReplicaManager`` shows, by Kafka's names."""
        return {}
