"""A simulated world: ensemble, network, controllers, brokers, clients and clocks in one thread, from one seed."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

import numpy as np

from kframe.broker.broker import Broker
from kframe.broker.config import BrokerConfig
from kframe.broker.messages import ControlResponse
from kframe.embedded.states import StateColumns
from kframe.model.brokers import Endpoint, Registration
from kframe.model.cluster import ClusterState
from kframe.model.columns import Ragged
from kframe.model.config import ControllerConfig
from kframe.model.elections import LeaderSelector
from kframe.model.events import Event, TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH, ElectionKind, ReplicaFlag
from kframe.model.protocol import InterBrokerProtocol
from kframe.model.requests import ControlRequests
from kframe.sim import actions
from kframe.sim.brokers import BrokerProcess
from kframe.sim.controllers import FIRST_ID, ControllerProcess
from kframe.sim.ensemble import SimEnsemble
from kframe.sim.invariants import INVARIANTS
from kframe.sim.letters import Letter, Row
from kframe.sim.network import Network
from kframe.sim.options import Options
from kframe.sim.plan import Action
from kframe.sim.scheduler import Scheduler
from kframe.sim.store import SimStore
from kframe.sim.watch import (
    Answered,
    Claimed,
    Connected,
    Ended,
    Invariant,
    Moment,
    Post,
    Replied,
    StateWritten,
    TopicWritten,
    Violation,
    Watch,
    Written,
)
from kframe.wire import ControlVersions, Encoder

#: A follower asks this often, and is out of sync after this long: sparse, so that a run is not all fetching.
FETCH_MS: Final = 4_000.0
LAG_MS: Final = 9_000.0
#: The world is at rest when nothing was written for so long.
QUIET_MS: Final = 20_000.0
#: After so long without faults it should be.
REST_MOST_MS: Final = 300_000.0
#: Topic ids are sent from this inter-broker protocol on.
_TOPIC_IDS_SINCE: Final = InterBrokerProtocol.parse("2.8-IV1")


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a run."""

    options: Options
    plan: tuple[Action, ...]
    events: int
    simulated_ms: float
    trace: str
    """A hash over all that was stored and all bytes that were sent."""
    violations: tuple[Violation, ...]
    played: Mapping[str, int]
    """How often each kind of action did something."""
    looks: Mapping[str, int]
    """How often each invariant was looked at."""
    counts: Mapping[str, int]
    """Events of controllers, failovers, writes, requests."""


class World:
    """One run."""

    def __init__(
        self,
        options: Options,
        plan: Sequence[Action],
        selectors: Mapping[ElectionKind, LeaderSelector] | None = None,
        invariants: tuple[Invariant, ...] = INVARIANTS,
    ) -> None:
        self.options = options
        self.plan = tuple(plan)
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, Random(f"network/{options.seed}"), options.delay_ms)
        self.session_timeout_ms = options.session_timeout_ms
        self.played: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.story: list[tuple[float, Action, dict[str, Any] | None]] = []
        """What has been played: when, and the step of a scenario that says the same, if there is one."""
        self.lines: dict[tuple[int, int, int], deque[Letter]] = {}
        """Requests that wait or are under way, by (controller, incarnation, broker)."""
        self.faulty_selectors = actions.Saboteur()
        self._trace = hashlib.blake2b(digest_size=16)
        self.ensemble = SimEnsemble(StateColumns(build_cluster(options)))
        self.ensemble.witness = self
        self.watch = Watch(self, invariants)
        for name, topic_id in self.ensemble.topic_ids.items():
            self.watch.known_id[name] = topic_id
            self.watch.ids_used[topic_id] = name
        protocol = InterBrokerProtocol.parse(options.protocol)
        self.topic_ids_used = protocol >= _TOPIC_IDS_SINCE
        self._encoder = Encoder(ControlVersions.of(protocol))
        self.brokers = {one: self._make_broker(one, protocol) for one in options.brokers}
        config = ControllerConfig(options.config)
        chosen = selectors or {kind: self.faulty_selectors for kind in ElectionKind if "plugin" in options.faults}
        self.controllers = [
            ControllerProcess(
                self, number, config, options.session_timeout_ms, options.request_timeout_ms, chosen
            )
            for number in range(options.controllers)
        ]  # fmt: skip
        self._written: list[TopicPartition] = []
        self._topics: dict[str, Mapping[int, Row]] = {}
        self._last_ended: tuple[Event | None, int] = (None, 0)
        self._failures: dict[int, tuple[int, int]] = {}
        self._errors = _ErrorCatcher()

    def run(self) -> Result:
        """Play the plan, end all faults, wait for rest, and look at everything."""
        log = logging.getLogger("kframe")
        before = log.level, log.propagate
        log.addHandler(self._errors)
        log.setLevel(logging.ERROR)
        log.propagate = False
        try:
            self._play()
        finally:
            log.removeHandler(self._errors)
            log.setLevel(before[0])
            log.propagate = before[1]
        return Result(
            self.options, self.plan, self.scheduler.happened, self.scheduler.now_ms, self._trace.hexdigest(),
            tuple(self.watch.violations), dict(self.played), dict(self.watch.looks), dict(self.counts),
        )  # fmt: skip

    def _play(self) -> None:
        for number, broker in enumerate(self.brokers.values()):
            self.scheduler.at(number * 3.0, broker.start)
        for number, process in enumerate(self.controllers):
            self.scheduler.at(20.0 + number * 15.0, process.start)
        for action in self.plan:
            self.scheduler.at(action.at_ms, partial(actions.play, self, action))
        last = self.plan[-1].at_ms if self.plan else 0.0
        self._run_until(lambda: self.scheduler.now_ms > last + 1_000.0)
        actions.calm(self)
        self._rest()
        if not self.watch.broken:
            self.watch.look(Moment.RESTED, None)

    def _run_until(self, done: Callable[[], bool]) -> None:
        scheduler, processes = self.scheduler, self.controllers
        while not done() and not self.watch.broken and scheduler.next_ms() < float("inf"):
            scheduler.step()
            for process in processes:
                process.stir()

    def _rest(self) -> None:
        began, since, changes = self.scheduler.now_ms, self.scheduler.now_ms, -1
        next_look = 0.0

        def at_rest() -> bool:
            nonlocal since, changes, next_look
            now = self.scheduler.now_ms
            if now < next_look:
                return False
            next_look = now + 500.0
            actions.bring_back(self)
            busy = any(not one.idle for one in self.controllers)
            if changes != self.ensemble.changes:
                since, changes = now, self.ensemble.changes
            return (now - since > QUIET_MS and not busy) or now - began > REST_MOST_MS

        self._run_until(at_rest)
        if self.scheduler.now_ms - began > REST_MOST_MS:
            self.watch.report("L3", "the world did not come to rest")

    def _make_broker(self, broker_id: int, protocol: InterBrokerProtocol) -> BrokerProcess:
        rack = f"rack-{broker_id % self.options.racks}" if self.options.racks else None
        config = BrokerConfig(
            protocol=protocol, log_dirs=("a", "b"), replica_lag_time_max_ms=LAG_MS, replica_fetch_wait_max_ms=FETCH_MS
        )
        model: Broker = Broker(broker_id, rack, config)
        for topic in self.options.topics:
            model.configure_topic(topic.name, topic.min_insync)
        endpoint = Endpoint("PLAINTEXT", f"broker-{broker_id}", 9092)
        return BrokerProcess(self, model, Registration(broker_id, NO_BROKER_EPOCH, (endpoint,), rack))

    # -- who is who

    def broker(self, broker_id: int) -> BrokerProcess | None:
        """A broker; None if there never was one."""
        return self.brokers.get(broker_id)

    def controller(self, controller_id: int) -> ControllerProcess | None:
        """A controller's process; -1: of whoever holds the role in storage."""
        wanted = self.ensemble.controller_id() if controller_id == -1 else controller_id
        number = wanted - FIRST_ID
        return self.controllers[number] if 0 <= number < len(self.controllers) else None

    def process_of(self, store: SimStore | None) -> ControllerProcess | None:
        """Whose store this is."""
        return None if store is None else self.controllers[store.controller_id - FIRST_ID]

    # -- what is written: the world as Witness

    def state_written(
        self, key: TopicPartition, before: Row | None, after: Row, writer: SimStore | None, cluster: ClusterState | None
    ) -> None:
        """A state was stored."""
        self._note(b"state", repr((key, after[1:7])).encode())
        process = self.process_of(writer)
        self.watch.last_writer[key] = process
        if process is not None:
            self._written.append(key)
        if before is not None and before.leader_epoch != after.leader_epoch:
            self.watch.rewritten.discard(key)
        self.counts["states"] += 1
        self.watch.look(Moment.STATE, StateWritten(key, before, after, process, cluster))

    def topic_written(
        self, name: str, before: Mapping[int, Row], after: Mapping[int, Row], writer: SimStore | None
    ) -> None:
        """A topic was stored."""
        topic_id = self.ensemble.topic_ids.get(name, bytes(16))
        self._note(b"topic", repr((name, topic_id, [row[7:10] for row in after.values()])).encode())
        process = self.process_of(writer)
        if process is not None:
            self._topics.setdefault(name, before)
        self.watch.look(Moment.TOPIC, TopicWritten(name, before, after, topic_id, process))

    def written(self, writer: SimStore | None, call: str, what: object) -> None:
        """Any write was done."""
        process = self.process_of(writer)
        self.counts["writes"] += 1
        if process is None:
            self._note(call.encode())
            return
        if call in ("claim", "take_over"):
            if isinstance(what, int):
                self.counts["claims"] += 1
                self.watch.look(Moment.CLAIMED, Claimed(process, what))
            return
        self._note(call.encode(), b"%d" % process.controller_id)
        self.watch.look(Moment.WRITTEN, Written(process, call))

    # -- what is sent: the world as Post

    def batch_sent(self, controller_id: int, cluster: ClusterState, requests: ControlRequests) -> None:
        """A batch was handed over: encode it as it would be for the wire."""
        for request in self._encoder.encode(cluster, requests):
            self._note(b"%d %d" % (request.broker, request.api_key), *request.chunks)

    def channel_opened(self, controller_id: int, broker_id: int, open_epoch: int | None) -> None:
        """A transport connects; ``open_epoch``: of a channel to the broker that is still open."""
        process = self.controllers[controller_id - FIRST_ID]
        self.lines[controller_id, process.incarnation, broker_id] = deque()
        self.watch.look(Moment.CONNECTED, Connected(process, broker_id, open_epoch))

    def letter_queued(self, controller_id: int, letter: Letter) -> None:
        """A request stands in its broker's queue."""
        process = self.controllers[controller_id - FIRST_ID]
        self.lines.setdefault((controller_id, process.incarnation, letter.broker_id), deque()).append(letter)
        self.watch.look(Moment.QUEUED, Post(process, letter))

    def letter_sent(self, controller_id: int, letter: Letter, again: bool) -> None:
        """A request leaves."""
        self.counts["requests"] += 1
        self.watch.look(Moment.SENT, Post(self.controllers[controller_id - FIRST_ID], letter, again))

    def letter_done(self, controller_id: int, letter: Letter) -> None:
        """A request was answered or dropped."""
        process = self.controllers[controller_id - FIRST_ID]
        line = self.lines.get((controller_id, process.incarnation, letter.broker_id))
        if line and line[0] is letter:
            line.popleft()

    def deliver(
        self, controller_id: int, letter: Letter, answer: Callable[[ControlResponse], None],
        refuse: Callable[[], None],
    ) -> None:  # fmt: skip
        """A request arrives."""
        broker = self.brokers.get(letter.broker_id)
        refuse() if broker is None else broker.receive(letter, answer, refuse)

    # -- controllers at work (Onlooker)

    def event_begins(self, process: ControllerProcess, event: Event) -> None:
        """The loop takes an event."""
        self._written.clear()
        self._topics.clear()

    def event_ended(self, process: ControllerProcess, event: Event) -> None:
        """The loop is done with an event."""
        self.counts["controller events"] += 1
        again = process.transport.again
        repeated = bool(again) and again[0] is event and self._last_ended == (event, self.ensemble.changes)
        if repeated:
            again.clear()
        written, self._last_ended = tuple(self._written), (event, self.ensemble.changes)
        self._written.clear()
        self.watch.look(Moment.EVENT, Ended(process, event, written, dict(self._topics), repeated))

    def unexplained_failure(self, process: ControllerProcess) -> str | None:
        """What the last event failed of, if it failed and nothing had befallen the process."""
        failures, befell = self._failures.get(id(process.loop), (0, 0))
        now = process.loop.controller.failures, process.store.failed_calls
        self._failures[id(process.loop)] = now
        error, self._errors.last = self._errors.last, None
        if now[0] > failures and now[1] == befell:
            return error or "no reason was logged"
        return None

    # -- brokers: the world as their Surroundings

    def request_answered(self, process: BrokerProcess, letter: Letter, response: ControlResponse) -> None:
        """A broker has answered a control request."""
        self.watch.answered(Answered(process, letter, response))

    def broker_up(self, process: BrokerProcess) -> None:
        """A broker runs: what it knew before is forgotten."""
        self.watch.memory.pop(process.broker_id, None)

    def broker_down(self, process: BrokerProcess) -> None:
        """A broker has ended."""
        self.watch.memory.pop(process.broker_id, None)

    def ask(
        self, process: ControllerProcess, what: str, event: Callable[[int], Event],
        read: Callable[[Any], Any] = lambda response: response, whole: Callable[[Any], bool] = lambda response: True,
    ) -> None:  # fmt: skip
        """Ask a controller as a client does, and see to it that it answers once."""
        answers = 0
        self.watch.unanswered += 1

        def answered(response: Any) -> None:
            nonlocal answers
            answers += 1
            self.watch.unanswered -= answers == 1
            complete = response is None or whole(response)
            self.watch.look(Moment.REPLIED, Replied(what, answers, complete))

        process.ask(event, read, answered)

    def lost_dirs_known(self, cluster: ClusterState, row: int | None) -> set[int]:
        """Replicas of a row that a controller knows to be on dead log directories."""
        if row is None:
            return set()
        return set(cluster.brokers.ids_of(cluster.partitions.flagged_replicas(row, ReplicaFlag.OFFLINE_DIR)))

    def _note(self, *parts: bytes | memoryview) -> None:
        for part in parts:
            self._trace.update(part)


class _ErrorCatcher(logging.Handler):
    """Keeps the last error that was logged, so that a failed event can say of what it failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.last: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        if record.name not in ("kframe.runtime", "kframe.controller"):
            return
        error = record.exc_info[1] if record.exc_info else None
        self.last = record.getMessage() if error is None else f"{type(error).__name__}: {error}"


def build_cluster(options: Options) -> ClusterState:
    """The topics of a world as stored before any controller: assigned, without states."""
    cluster = ClusterState()
    cluster.brokers.index_of(options.brokers)
    for topic in options.topics:
        index_of = cluster.brokers.index_of
        lists = Ragged.of([index_of(one).tolist() for one in topic.assignments])
        topic_id = hashlib.sha256(f"{options.seed} {topic.name}".encode()).digest()[:16]
        cluster.add_topics([topic.name], np.array([len(topic.assignments)]), lists, ids=[topic_id])
        index = cluster.topics.find(topic.name)
        cluster.topics.unclean[index] = int(topic.unclean)
        cluster.topics.min_insync[index] = topic.min_insync
    return cluster
