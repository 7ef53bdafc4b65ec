"""Producers and an administrator outside the cluster, and what was acknowledged to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Final
from uuid import UUID

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import controller_apis, topic_requests
from kframe_simulator.broker.messages import Produce, ProduceResponse
from kframe_simulator.simulation.network import OUTSIDE
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.simulation.broker import BrokerMachine
from verification.kraft.simulation.expected.topics import compare_creation, compare_deletion
from verification.kraft.simulation.options import CONTROLLER
from verification.kraft.simulation.processes import Process, Requests
from verification.kraft.simulation.requests import BrokerRequest, Comparison, ControllerRequest, Rule

_PRODUCE_MS: Final = (50.0, 600.0)


class Administrator(Process):
    """Sends the requests of administrators. ``topics`` are those whose creation was acknowledged, by name."""

    def __init__(self, requests: Requests, scheduler: Scheduler, random: Random) -> None:
        super().__init__(OUTSIDE, scheduler)
        self.topics: dict[str, UUID] = {}
        self.uncertain: set[str] = set()
        """Topics whose creation or deletion was requested and not acknowledged."""
        self.deleted: set[UUID] = set()
        self.counts: Counter[str] = Counter()
        self._requests = requests
        self._random = random
        self._number = 0

    def ask(
        self,
        name: str,
        rule: Rule,
        comparison: Comparison | None = None,
        on_response: Callable[[Any], None] = lambda response: None,
    ) -> None:
        """Ask the controller. A response may be a refusal, or None."""

        def finish(response: Any) -> None:
            outcome = "lost" if response is None else "refused" if isinstance(response, Exception) else "answered"
            self.counts[f"{name} {outcome}"] += 1
            on_response(response)

        self._requests.ask(self, CONTROLLER, ControllerRequest(rule, comparison), finish, 20_000.0)

    def create_topic(self, partitions: int, factor: int) -> None:
        """Create a topic with a new name."""
        self._number += 1
        name = f"t{self._number}"
        topic = topic_requests.CreatableTopic(name, partitions, factor)
        self.uncertain.add(name)
        self.ask(
            "create topic",
            lambda context, end: controller_apis.create_topics(
                context, [topic], lambda _: UUID(int=self._random.getrandbits(128) | 1 << 100)
            ),
            partial(compare_creation, topic),
            lambda response: self._on_created(name, response),
        )

    def _on_created(self, name: str, response: Any) -> None:
        if not isinstance(response, list):
            return
        self.uncertain.discard(name)
        if response[0].error is ErrorCode.NONE:
            self.topics[name] = response[0].topic_id

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        topic_id = self.topics.pop(name)
        self.uncertain.add(name)
        self.ask(
            "delete topic",
            lambda context, end: controller_apis.delete_topics(context, [name]),
            partial(compare_deletion, name),
            lambda response: self._on_deleted(name, topic_id, response),
        )

    def _on_deleted(self, name: str, topic_id: UUID, response: Any) -> None:
        if isinstance(response, list) and response[0].error is ErrorCode.NONE:
            self.deleted.add(topic_id)
            self.uncertain.discard(name)


class Producer(Process):
    """Sends a record to a random partition, again and again, with acks=all."""

    def __init__(
        self, number: int, admin: Administrator, machines: dict[int, BrokerMachine], requests: Requests, random: Random
    ) -> None:
        super().__init__(OUTSIDE - 1 - number, admin.scheduler)
        self.acknowledged: list[tuple[UUID, int, int, object]] = []
        """Topic id, partition, offset and value of each acknowledged record."""
        self.sent = 0
        self.is_stopping = False
        """Whether it sends nothing more."""
        self._admin = admin
        self._machines = machines
        self._requests = requests
        self._random = random
        self._open: dict[int, tuple[UUID, int, object]] = {}
        self._next()

    def _next(self) -> None:
        if self.is_stopping:
            return
        self.after(self._random.uniform(*_PRODUCE_MS), self._next)
        known = [machine.model for machine in self._machines.values() if machine.model.running]
        if not known or not self._admin.topics:
            return
        cache = self._random.choice(known).metadata
        name = self._random.choice(sorted(self._admin.topics))
        led = [key for key, state in cache.partitions.items() if key[0] == name and state.leader >= 0]
        if not led:
            return
        key = self._random.choice(sorted(led))
        self.sent += 1
        # The low digits of the correlation name the producer that a late response is for.
        correlation = self.sent * 10 + (OUTSIDE - 1 - self.node_id)
        self._open[correlation] = self._admin.topics[name], key[1], correlation
        message = Produce(key, correlation, timeout_ms=10_000.0, correlation=correlation)
        self._requests.ask(
            self,
            cache.partitions[key].leader,
            BrokerRequest(message),
            lambda response: self.on_response(correlation, response),
            15_000.0,
        )

    def on_response(self, correlation: int, response: ProduceResponse | None) -> None:
        """Take a response, or None."""
        sent = self._open.pop(correlation, None) if response is not None else None
        if sent is not None and response is not None and response.error is ErrorCode.NONE:
            self.acknowledged.append((sent[0], sent[1], response.offset, sent[2]))
