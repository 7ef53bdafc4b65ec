"""Compare a plugin's transport with embedded brokers: both receive the same batches.

Brokers come, go and stop responding. The test compares what each broker has received and responded. A request may be
repeated unchanged if its response was lost. Requests that wait for a silent broker may be merged if the broker learns
the same. All others arrive once, in order, one in flight, at the registered brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

from kframe.embedded import Request
from kframe.model.cluster import ClusterState
from kframe.model.events import Event
from kframe.model.requests import ControlRequests
from kframe.testing.clusters import PartitionSpec, cluster_of, healthy, requests_of
from kframe.testing.transport_sandbox import EmbeddedSandbox, TransportSandbox
from kframe_simulator.differential.storages import StorageDifference, quiet

#: Steps of a history.
STEPS: Final = 120
BROKERS: Final = (1, 2, 3, 4)
_NAMES: Final = ("t-0", "t-1", "t-2", "gone-0")

#: By broker: requests, and events in comparable form.
_Received: TypeAlias = tuple[dict[int, list[Request]], dict[int, list[str]]]


@dataclass(slots=True)
class _Side:
    """One of the two transports, and the results of the current step."""

    sandbox: TransportSandbox
    cluster: ClusterState
    events: list[Event] = field(default_factory=list)
    acting: bool = True
    arrived: dict[int, int] = field(default_factory=dict)
    """The number of requests to each broker in this step. Repeated requests are included."""
    last: dict[int, Request] = field(default_factory=dict)

    def open(self) -> None:
        self.sandbox.transport.open(self.events.append, lambda: self.acting)

    def take(self, broker_ids: Sequence[int]) -> _Received:
        """Requests and events since the last call, without unchanged repetitions."""
        self.sandbox.settle()
        received: dict[int, list[Request]] = {item: [] for item in broker_ids}
        self.arrived = dict.fromkeys(broker_ids, 0)
        for request in self.sandbox.received():
            broker_id = request["broker"]
            self.arrived[broker_id] += 1
            if self.last.get(broker_id) != request:
                received[broker_id].append(request)
            self.last[broker_id] = request
        events: dict[int, list[str]] = {item: [] for item in broker_ids}
        for event in self.events:
            events.setdefault(getattr(event, "broker_id", -1), []).append(_comparable(event))
        self.events.clear()
        return received, events


def play_batches(
    seed: int, make: Callable[[ClusterState], TransportSandbox], steps: int = STEPS
) -> StorageDifference | None:
    """Play one history through a transport and the model. Returns the first difference, or None."""
    cluster = history_cluster()
    sides = [_Side(EmbeddedSandbox.make(), history_cluster()), _Side(make(cluster), cluster)]
    with quiet(), ExitStack() as after:
        after.callback(getattr(sides[1].sandbox, "close", lambda: None))
        after.callback(sides[1].sandbox.transport.close)
        history = _Batches(Random(f"batches/{seed}"), sides)
        for number in range(1, steps + 1):
            operation, stuck = history.step()
            expected, result = sides[0].take(BROKERS), sides[1].take(BROKERS)
            problem = _compare(expected, result, stuck, can_silence=history.can_silence) or history.missing_repetition()
            if problem is not None:
                return StorageDifference(seed, number, operation, *problem)
    return None


def history_cluster() -> ClusterState:
    """Four brokers, a topic of three partitions, and a topic that is being deleted."""
    partitions = [healthy(1, 2, 3), healthy(2, 3, 4), PartitionSpec((4, 1), leader=None, isr=(4,))]
    cluster = cluster_of({"t": partitions, "gone": [healthy(2, 1)]}, registered=BROKERS)
    cluster.topics.deleting[1] = 1
    return cluster


class _Batches:
    """Draws batches and broker faults. Applies them to both."""

    def __init__(self, random: Random, sides: Sequence[_Side]) -> None:
        self.can_silence = hasattr(sides[1].sandbox, "silence")
        self._random, self._sides = random, sides
        self._connected: set[int] = set()
        self._silent: set[int] = set()
        self._epoch = 0
        self._lost: int | None = None
        """The broker whose response was lost in this step."""
        for side in sides:
            side.open()
        self._connect(*BROKERS)

    def step(self) -> tuple[str, frozenset[int]]:
        """Perform a step. Returns its name, and the brokers that were silent before or after it."""
        silent, self._lost = frozenset(self._silent), None
        actions: list[Callable[[], str]] = [self._send, self._connect_or_disconnect, self._bounce, self._lose_role]
        weights = [12, 2, 1, 1]
        if self.can_silence:
            actions += [self._silence, self._respond, self._lose]
            weights += [2, 2, 1]
        operation = self._random.choices(actions, weights)[0]()
        return operation, silent | frozenset(self._silent)

    def missing_repetition(self) -> tuple[str, str] | None:
        """The problem if a response was lost and the request was not repeated."""
        if self._lost is None or self._sides[1].arrived[self._lost] > 1:
            return None
        return f"broker {self._lost} receives the request again whose response was lost", "it came once"

    def _send(self) -> str:
        """Send a batch of the current columns. Then change the columns."""
        random = self._random
        self._epoch += 1
        lead = {broker: self._sample_partitions() for broker in self._sample_brokers()}
        stop = {
            broker: {name: (self._epoch, random.random() < 0.5) for name in self._sample_partitions()}
            for broker in self._sample_brokers()
        }
        metadata = (self._sample_brokers(), self._sample_partitions())
        new = self._sample_partitions()
        for side in self._sides:
            partitions = side.cluster.partitions
            partitions.leader_epoch[:] = self._epoch
            side.sandbox.transport.send(side.cluster, self._batch(side.cluster, lead, new, metadata, stop))
            partitions.leader_epoch[:] = 999_999
        return f"send(leader_and_isr={lead}, metadata={metadata}, stop_replica={stop})"

    def _batch(self, cluster: ClusterState, lead: Any, new: Any, notified: Any, stop: Any) -> ControlRequests:
        return requests_of(
            cluster, leader_and_isr=lead, is_new=new, metadata=notified, stop_replica=stop, controller_epoch=7
        )

    def _sample_partitions(self) -> list[str]:
        return sorted(self._random.sample(_NAMES, self._random.randint(1, 3)))

    def _sample_brokers(self) -> list[int]:
        return sorted(self._random.sample(BROKERS, self._random.randint(0, 3)))

    def _connect_or_disconnect(self) -> str:
        broker_id = self._random.choice(BROKERS)
        if broker_id in self._connected:
            self._disconnect(broker_id)
            return f"disconnect({broker_id})"
        self._connect(broker_id)
        return f"connect({broker_id})"

    def _bounce(self) -> str:
        broker_id = self._random.choice(BROKERS)
        self._disconnect(broker_id)
        self._connect(broker_id)
        return f"disconnect({broker_id}), connect({broker_id})"

    def _lose_role(self) -> str:
        """Lose the role: a batch then reaches no broker. The next controller starts again."""
        for side in self._sides:
            side.acting = False
        operation = self._send()
        for side in self._sides:
            side.sandbox.settle()
            side.sandbox.transport.close()
            side.acting = True
            side.open()
        self._connected.clear()
        self._connect(*BROKERS)
        return f"{operation} while the role is lost, close(), open()"

    def _silence(self) -> str:
        return self._set_silent(self._silent, "silence", set(BROKERS) - self._silent)

    def _respond(self) -> str:
        return self._set_silent(self._silent, "respond", self._silent)

    def _set_silent(self, silent: set[int], action: str, candidates: set[int]) -> str:
        if not candidates:
            return "nothing"
        broker_id = self._random.choice(sorted(candidates))
        for side in self._sides:
            getattr(side.sandbox, action)(broker_id)
        silent.symmetric_difference_update({broker_id})
        return f"{action}({broker_id})"

    def _lose(self) -> str:
        responding = sorted(self._connected - self._silent)
        if not responding:
            return "nothing"
        broker_id = self._lost = self._random.choice(responding)
        self._epoch += 1
        for side in self._sides:
            side.sandbox.lose_next(broker_id)
            side.cluster.partitions.leader_epoch[:] = self._epoch
            side.sandbox.transport.send(side.cluster, requests_of(side.cluster, leader_and_isr={broker_id: ["t-0"]}))
        return f"lose_next({broker_id}), send(leader_and_isr={{{broker_id}: ['t-0']}})"

    def _connect(self, *broker_ids: int) -> None:
        self._connected.update(broker_ids)
        for side in self._sides:
            side.sandbox.transport.connect(side.cluster, _indexes(side.cluster, broker_ids))

    def _disconnect(self, *broker_ids: int) -> None:
        self._connected.difference_update(broker_ids)
        for side in self._sides:
            side.sandbox.transport.disconnect(side.cluster, _indexes(side.cluster, broker_ids))


def _compare(
    expected: _Received, result: _Received, stuck: frozenset[int], *, can_silence: bool
) -> tuple[str, str] | None:
    """The expected and the actual requests and events if they differ."""
    for broker_id in expected[0].keys() | result[0].keys():
        expected_requests, actual_requests = expected[0].get(broker_id, []), result[0].get(broker_id, [])
        if expected_requests != actual_requests and not (
            broker_id in stuck
            and expected_requests
            and _final_state(expected_requests) == _final_state(actual_requests)
        ):
            return f"broker {broker_id} receives {_summary(expected_requests)}", _summary(actual_requests)
        if (
            can_silence
            and expected_requests == actual_requests
            and expected[1].get(broker_id, []) != result[1].get(broker_id, [])
        ):
            return f"broker {broker_id}: events {expected[1].get(broker_id)}", str(result[1].get(broker_id))
    return None


def _final_state(requests: Sequence[Request]) -> Mapping[Any, Any]:
    """The state of a broker after these requests. It has the last request for each replica, and the metadata."""
    known: dict[Any, Any] = {}
    for request in requests:
        of_cluster = request["api"] == "UpdateMetadata"
        known["brokers"] = request.get("live_brokers", known.get("brokers"))
        for name, state in request["partitions"].items():
            known[of_cluster, name] = request["api"], {key: value for key, value in state.items() if key != "is_new"}
    return known


def _summary(requests: Sequence[Request]) -> str:
    """Requests by kind, partitions and leader epochs."""
    return str(
        [
            (request["api"], {name: state["leader_epoch"] for name, state in request["partitions"].items()})
            for request in requests
        ]
    )


def _comparable(event: Event) -> str:
    """An event in comparable form. Rows are the controller's, so that they are equal on both sides."""
    rows = getattr(event, "rows", None)
    return f"{event!r}"[:200] if rows is None else f"{type(event).__name__}{np.sort(rows).tolist()}"


def _indexes(cluster: ClusterState, broker_ids: Sequence[int]) -> tuple[int, ...]:
    return tuple(cluster.brokers.index_of(broker_ids).tolist())
