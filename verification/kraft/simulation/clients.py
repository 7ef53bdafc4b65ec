"""Producers and an administrator outside the cluster, and what was acknowledged to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any, Final
from uuid import UUID

from kframe.errors import ErrorCode
from kframe.plugin.kraft_controller import broker_events, controller_apis, topic_requests
from kframe.plugin.server import MutationQuota, MutationQuotas, QuotaEntity
from kframe_simulator.broker.messages import Produce, ProduceResponse
from kframe_simulator.simulation.network import OUTSIDE
from kframe_simulator.simulation.scheduler import Scheduler
from verification.kraft.simulation.broker import BrokerMachine
from verification.kraft.simulation.expected.topics import compare_creations, compare_deletions, compare_new_partitions
from verification.kraft.simulation.options import CONTROLLER
from verification.kraft.simulation.processes import Process, Requests
from verification.kraft.simulation.requests import BrokerRequest, Comparison, ControllerRequest, Rule

_PRODUCE_MS: Final = (50.0, 600.0)


def _ignore(response: Any) -> None:
    pass


def _quota(*, is_limited: bool) -> MutationQuota:
    """A quota that is exceeded after one mutation, or none."""
    rates = {QuotaEntity("user", None): 0.001} if is_limited else {}
    return MutationQuotas().quota_of("user", "", rates, 0.0, strict=True)


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
        on_response: Callable[[Any], None] = _ignore,
        *,
        is_repeatable: bool = False,
    ) -> None:
        """Ask the controller. A response may be a refusal, or None."""

        def finish(response: Any) -> None:
            outcome = "lost" if response is None else "refused" if isinstance(response, Exception) else "answered"
            self.counts[f"{name} {outcome}"] += 1
            on_response(response)

        self._requests.ask(self, CONTROLLER, ControllerRequest(rule, comparison, is_repeatable), finish, 20_000.0)

    def send_heartbeat(self, heartbeat: broker_events.BrokerHeartbeat) -> None:
        """Send a heartbeat in the name of a broker."""
        self._requests.ask(self, CONTROLLER, heartbeat, _ignore)

    def new_name(self, prefix: str) -> str:
        """A name of a topic that was not used before."""
        self._number += 1
        return f"{prefix}{self._number}"

    def create_topics(
        self,
        topics: Sequence[topic_requests.CreatableTopic],
        *,
        validate_only: bool = False,
        is_limited: bool = False,
    ) -> None:
        """Create topics, or have the request validated. ``is_limited``: the quota allows no more than one."""
        if not validate_only:
            self.uncertain |= {topic.name for topic in topics} - self.topics.keys()
        self.ask(
            "validate topics" if validate_only else "create topics",
            lambda context, end: controller_apis.create_topics(
                context,
                topics,
                lambda _: UUID(int=self._random.getrandbits(128) | 1 << 100),
                validate_only=validate_only,
                quota=_quota(is_limited=is_limited),
            ),
            partial(compare_creations, topics, validate_only, is_limited),
            _ignore if validate_only else self._on_created,
        )

    def _on_created(self, response: Any) -> None:
        for result in response if isinstance(response, list) else ():
            self.uncertain.discard(result.topic)
            if result.error is ErrorCode.NONE:
                self.topics[result.topic] = result.topic_id

    def add_partitions(
        self,
        requests: Sequence[topic_requests.CreatePartitionsTopic],
        *,
        validate_only: bool = False,
        is_limited: bool = False,
    ) -> None:
        """Add partitions to topics, or have the request validated. ``is_limited``: the quota allows one topic."""
        self.ask(
            "validate partitions" if validate_only else "add partitions",
            lambda context, end: controller_apis.create_partitions(
                context, requests, validate_only=validate_only, quota=_quota(is_limited=is_limited)
            ),
            partial(compare_new_partitions, requests, validate_only, is_limited),
        )

    def delete_topic(self, name: str, *, by_id: bool) -> None:
        """Delete a topic by its name or its id."""
        topic_id = self.topics.pop(name)
        self.uncertain.add(name)
        if by_id:
            self.request_deletions([], [topic_id], lambda response: self._on_deleted(name, topic_id, response))
        else:
            self.request_deletions([name], [], lambda response: self._on_deleted(name, topic_id, response))

    def request_deletions(
        self,
        names: Sequence[str],
        topic_ids: Sequence[UUID],
        on_response: Callable[[Any], None] = _ignore,
    ) -> None:
        """Request deletions that are refused, unless they are of known topics."""
        self.ask(
            "delete topics",
            lambda context, end: controller_apis.delete_topics(context, names, topic_ids),
            partial(compare_deletions, names, topic_ids),
            on_response,
        )

    def request_unknown(self, topic_ids: Sequence[UUID]) -> None:
        """Request the deletion of unknown topics from the rules, as one that was just deleted arrives there."""
        self.ask(
            "delete unknown topics",
            lambda context, end: topic_requests.delete_topics(context, topic_ids),
            partial(compare_deletions, (), topic_ids),
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
