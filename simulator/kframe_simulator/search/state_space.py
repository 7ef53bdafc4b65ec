"""The small space: the successors of a state, in a fixed order.

Two reductions lose no behaviour. A controller takes pending watches and broker requests in any order, because each may
have been delayed; so the state needs no queue for them. And a broker takes the UpdateMetadata before a request that
changes its replica in the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from kframe.model.config import ControllerConfig
from kframe_simulator.search import brokers as rules
from kframe_simulator.search import invariants, storage
from kframe_simulator.search.configurations import SearchOptions
from kframe_simulator.search.controllers import ControllerRules, StepResult
from kframe_simulator.search.subject import Subject
from kframe_simulator.search.values import (
    ARMED,
    BROKERS,
    BROKERS_CHANGED,
    CONTROLLERS,
    DOWN,
    ELECT,
    EXPIRED,
    FOLLOWS,
    ControllerSession,
    Facts,
    Label,
    Pool,
    SearchBroker,
    Stored,
)

#: A state as the numbers of its parts: storage, processes, channels (by controller), brokers, facts.
State: TypeAlias = tuple[int, ...]
#: The changed parts of a state: indexes, and the numbers of the new values.
Changes: TypeAlias = dict[int, int]
_CHANNELS, _BROKERS, _FACTS = 3, 9, 12


@dataclass(frozen=True, slots=True)
class Successor:
    """A successor state, with its step."""

    label: Label
    state: State
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Done:
    """A controller step in numbers, independent of the other parts of the state."""

    label: Label
    step: StepResult
    changes: tuple[tuple[int, int], ...]
    """Storage and the process itself."""
    channels: tuple[tuple[int, int], ...]
    """Indexes of channels, and the numbers of their operations: (whether the channel is new, the sent requests)."""
    replies: tuple[tuple[Any, ...], ...]


class StateSpace:
    """The transition rules, and the values by number."""

    def __init__(self, options: SearchOptions) -> None:
        self.options = options
        config = ControllerConfig({
            "auto.leader.rebalance.enable": "false", "unclean.leader.election.enable": str(options.unclean).lower(),
        })  # fmt: skip
        self._numbered = CONTROLLERS[: options.controllers]
        self.subjects = {controller: Subject(storage.IDS[controller], config) for controller in self._numbered}
        self._controllers = ControllerRules(
            self.subjects, options.fenced, options.fine, options.unclean, options.target
        )
        self.pools = {kind: Pool() for kind in ("stored", "seat", "channel", "broker", "facts")}
        kinds = ["stored"] + ["seat"] * 2 + ["channel"] * 6 + ["broker"] * 3 + ["facts"]
        self._pool = [self.pools[kind] for kind in kinds]
        self._operations = Pool()
        self._done: dict[tuple[Any, ...], _Done] = {}
        self._broker_steps: dict[tuple[int, int], rules.BrokerSteps] = {}
        self._sent: dict[tuple[int, int], int] = {}
        self._deliveries: dict[tuple[int, ...], tuple[Label, int, int]] = {}
        self._records: dict[tuple[int, ...], tuple[int, tuple[str, ...]]] = {}

    # -- States as values.

    def values(self, state: State) -> list[Any]:
        """The parts of a state."""
        return [pool.values[number] for pool, number in zip(self._pool, state, strict=True)]

    def opening(self) -> Iterator[Successor]:
        """The steps up to the root: controller 1 takes over a cluster, and everything comes to rest."""
        options = self.options
        stored = Stored((1, 1, 1), 0, 0, 1, 0, options.isr, 0, 0, 0, options.assigned)
        processes = [self._started(controller) for controller in self._numbered]
        processes += [ControllerSession(0, DOWN, 0, 0)] * (2 - len(processes))
        reassignments = 2 if options.target else 0
        facts = Facts(False, False, options.broker_faults, options.controller_faults, reassignments)
        values = [stored, *processes, *[None] * 6, *[SearchBroker(True, 1)] * 3, facts]
        state = tuple(pool.number(value) for pool, value in zip(self._pool, values, strict=True))
        while quiet := next(self._protocol(state, self.values(state)), None):
            yield quiet
            state = quiet.state
        caught_up = self.values(state)[_BROKERS]._replace(fetched=options.isr[1:])
        yield self._go(state, ("cluster", 0, "is at rest"), {_BROKERS: self._number(_BROKERS, caught_up)})

    def root(self) -> State:
        """The state after the opening."""
        *_, last = self.opening()
        return last.state

    def _number(self, index: int, value: Any) -> int:
        return self._pool[index].number(value)

    # -- Steps.

    def expand(self, state: State) -> tuple[list[Successor], list[str] | None]:
        """All successors. If nothing is in progress, also the violations of the state at rest, else None."""
        values = self.values(state)
        successors = list(self._protocol(state, values))
        rest = None if successors else self._at_rest(values)
        successors += self._operator(state, values)
        successors += self._replication(state, values)
        successors += self._broker_faults(state, values)
        successors += self._controller_faults(state, values)
        return successors, rest

    def _protocol(self, state: State, values: list[Any]) -> Iterator[Successor]:
        """Steps without a fault. Controllers run, requests and responses arrive."""
        for controller in self._numbered:
            yield from self._controller(state, values, controller)
        for index in range(_CHANNELS, _BROKERS):
            controller, outcome = (index - _CHANNELS) // 3 + 1, (index - _CHANNELS) % 3 + 1
            if values[index] and values[_BROKERS + outcome - 1].up:
                yield self._deliver(state, values, controller, outcome)
        for index in range(_BROKERS, _FACTS):
            if values[index].response and (reads_response := self._by_itself(index, state[index]).read) is not None:
                yield self._go(state, reads_response[0], {index: reads_response[1]})

    def _controller(self, state: State, values: list[Any], controller: int) -> Iterator[Successor]:
        process: ControllerSession = values[controller]
        if not self._controllers.resting(controller, process):
            yield self._stepped(state, values, controller, ("call",), self._controllers.call)
            return
        for name in self._controllers.waiting(process):
            yield self._stepped(state, values, controller, ("take", name), self._controllers.take, name)
        if process.flags & (EXPIRED | DOWN):
            return
        for broker_id in BROKERS:
            broker: SearchBroker = values[_BROKERS + broker_id - 1]
            proposal, shutdown_epoch = broker.queued_proposal, broker.shutdown_request[1]
            if proposal is not None and proposal.controller == controller:
                key = "alter", broker_id, state[_BROKERS + broker_id - 1]
                yield self._stepped(state, values, controller, key, self._controllers.serve, broker_id, proposal)
            if broker.shutdown_request[0] == controller:
                key = "leave", broker_id, shutdown_epoch
                yield self._stepped(state, values, controller, key, self._controllers.serve, broker_id, shutdown_epoch)

    def _operator(self, state: State, values: list[Any]) -> Iterator[Successor]:
        """An operator requests the reassignment of the partition, or its cancellation."""
        facts, controller = values[_FACTS], values[0].owner
        resting = controller and self._controllers.resting(controller, values[controller])
        if facts.reassignments and resting and not values[controller].flags & EXPIRED:
            replicas = self.options.target if facts.reassignments == 2 else ()
            step = self._stepped(state, values, controller, ("move", *replicas), self._controllers.move, *replicas)
            spent = {_FACTS: self._number(_FACTS, facts._replace(reassignments=facts.reassignments - 1))}
            yield self._go(step.state, step.label, spent, step.broken)

    def _stepped(
        self, state: State, values: list[Any], controller: int, action: tuple[Any, ...], do: Callable[..., StepResult],
        *arguments: Any,
    ) -> Successor:  # fmt: skip
        """A controller step. Looked up if the same controller performed it before on the same storage."""
        key = controller, state[0], state[controller], action
        done = self._done.get(key)
        if done is None:
            step = do(controller, values[0], values[controller], *arguments)
            done = self._done[key] = self._do(values, controller, action, step, arguments)
        changes = dict(done.changes)
        for other in self._numbered if done.step.notified else ():
            process = values[other]
            for notification in done.step.notified if other != controller else ():
                process = storage.notify(process, notification)
                changes[other] = self._number(other, process)
        if action == ("take", "SessionExpired"):
            self._drop_requests(values, controller, changes)
        elif action[0] in ("alter", "leave"):
            index = _BROKERS + action[1] - 1
            changes[index] = self._number(index, rules.busy(values[index], controller, action[0]))
        for index, operation in done.channels:
            changes[index] = self._operated(state[index], operation)
        for token, response in done.replies:
            if token == 20:
                continue
            index = _BROKERS + token % 10 - 1
            broker = self._pool[index].values[changes.get(index, state[index])]
            changes[index] = self._number(index, rules.receive_response(broker, token, response))
        return self._go(state, done.label, changes, done.step.broken)

    def _do(
        self, values: list[Any], controller: int, action: tuple[Any, ...], step: StepResult, arguments: tuple[Any, ...]
    ) -> _Done:
        ask = self.subjects[controller].nodes[values[controller].node].ask
        performed = ("calls", *ask) if ask is not None else ("takes", *_named(action, arguments))
        label = ("controller", controller, *performed)
        first = _CHANNELS + 3 * (controller - 1) - 1
        channels, replies = dict[int, tuple[Any, ...]](), list[tuple[Any, ...]]()
        for kind, *content in step.acts:
            if kind == "send":
                for broker_id, message in content[0]:
                    fresh, messages = channels.get(first + broker_id, (None, ()))
                    channels[first + broker_id] = fresh, (*messages, message)
            elif kind == "reply":
                replies.append((content[0], content[1]))
            elif kind in ("open", "close", "resigned"):
                broker_ids = BROKERS if kind == "resigned" else content[0]
                channels |= {first + item: (kind, ()) for item in broker_ids}
        changes = (0, self._number(0, step.stored)), (controller, self._number(controller, step.process))
        operations = tuple((index, self._operations.number(done)) for index, done in channels.items())
        return _Done(label, step, changes, operations, tuple(replies))

    def _operated(self, channel: int, operation: int) -> int:
        """The number of a channel after an operation."""
        result = self._sent.get((channel, operation))
        if result is None:
            fresh, messages = self._operations.values[operation]
            sent = () if fresh == "open" else None if fresh else self._pool[_CHANNELS].values[channel]
            result = self._number(_CHANNELS, None if sent is None else (*sent, *messages))
            self._sent[channel, operation] = result
        return result

    def _deliver(self, state: State, values: list[Any], controller: int, receiver: int) -> Successor:
        """A broker takes the next request of a controller, together with the UpdateMetadata before it."""
        index, member = _CHANNELS + 3 * (controller - 1) + receiver - 1, _BROKERS + receiver - 1
        key = controller, receiver, state[index], state[member]
        result = self._deliveries.get(key)
        if result is None:
            channel, broker, count = values[index], values[member], 1
            while channel[count - 1][0] == "U" and count < len(channel):
                count += 1
            for message in channel[:count]:
                broker = rules.take(receiver, broker, controller, message)
            label = ("broker", receiver, "takes of controller", controller, *channel[:count])
            result = label, self._number(index, channel[count:]), self._number(member, broker)
            self._deliveries[key] = result
        return self._go(state, result[0], {index: result[1], member: result[2]})

    def _by_itself(self, index: int, number: int) -> rules.BrokerSteps:
        result = self._broker_steps.get((index, number))
        if result is None:
            broker = self._pool[index].values[number]
            result = self._broker_steps[index, number] = rules.broker_steps(
                index - _BROKERS + 1, broker, self._pool[index]
            )
        return result

    def _replication(self, state: State, values: list[Any]) -> Iterator[Successor]:
        """Replication between brokers, and their requests."""
        facts: Facts = values[_FACTS]
        for broker_id in BROKERS:
            index, broker = _BROKERS + broker_id - 1, values[_BROKERS + broker_id - 1]
            own_steps = self._by_itself(index, state[index])
            for label, number in own_steps.proposals:
                yield self._go(state, label, {index: number})
            if self.options.record and not facts.produced and own_steps.leads:
                appended = self._number(index, rules.produce(broker))
                produced = self._number(_FACTS, facts._replace(produced=True))
                yield self._go(state, ("broker", broker_id, "appends the record"), {index: appended, _FACTS: produced})
            for other in BROKERS:
                leader: SearchBroker = values[_BROKERS + other - 1]
                if other != broker_id and broker.leader == other and rules.fetches(leader, broker, broker_id, other):
                    leader, follower = rules.fetch(leader, broker, broker_id)
                    changes = {_BROKERS + other - 1: self._number(index, leader), index: self._number(index, follower)}
                    yield self._go(state, ("broker", broker_id, "fetches from", other), changes)

    def _broker_faults(self, state: State, values: list[Any]) -> Iterator[Successor]:
        facts: Facts = values[_FACTS]
        spent = self._number(_FACTS, facts._replace(broker_faults=max(facts.broker_faults - 1, -1)))
        for index in range(_BROKERS, _FACTS):
            registered, up = values[0].registered[index - _BROKERS], values[index].up
            steps = self._by_itself(index, state[index])
            if not registered:
                label, number, epoch = steps.back
                yield self._go(state, label, self._registration(values, index, epoch) | {index: number})
            if not facts.broker_faults or not up:
                continue
            unregistered = self._registration(values, index, 0) | {_FACTS: spent}
            yield self._go(state, steps.died[0], unregistered | {index: steps.died[1]})
            if registered and self.options.lapses:
                yield self._go(state, steps.lapses, unregistered)
            if steps.shutdown is not None and self.options.shutdown:
                yield self._go(state, steps.shutdown[0], {index: steps.shutdown[1], _FACTS: spent})

    def _registration(self, values: list[Any], index: int, epoch: int) -> Changes:
        """The changes of storage and of watching processes after a registration change."""
        before, position = values[0].registered, index - _BROKERS
        registered = (*before[:position], epoch, *before[position + 1 :])
        if registered == before:
            return {}
        changes = {0: self._number(0, values[0]._replace(registered=registered))}
        for process in self._numbered:
            flags = values[process].flags
            if flags & FOLLOWS and not flags & EXPIRED:
                changes[process] = self._number(process, values[process]._replace(flags=flags | BROKERS_CHANGED))
        return changes

    def _controller_faults(self, state: State, values: list[Any]) -> Iterator[Successor]:
        facts: Facts = values[_FACTS]
        spent = {_FACTS: self._number(_FACTS, facts._replace(controller_faults=max(facts.controller_faults - 1, -1)))}
        owner = values[0].owner
        for controller in self._numbered:
            fresh = self._started(controller)
            if values[controller].flags & DOWN:
                changes = {controller: self._number(controller, fresh)}
                yield self._go(state, ("controller", controller, "starts"), changes)
            elif facts.controller_faults and values[controller] != fresh:
                changes = spent | self._without_role(values, controller)
                changes[controller] = self._number(controller, ControllerSession(fresh.node, DOWN, 0, 0))
                self._drop_requests(values, controller, changes)
                yield self._go(state, ("controller", controller, "crashes"), changes)
        if owner and facts.controller_faults:
            free = spent | self._without_role(values, owner)
            expired = self._number(owner, values[owner]._replace(flags=EXPIRED))
            yield self._go(state, ("controller", owner, "loses its session"), free | {owner: expired})
            notified_owner = self._number(owner, storage.notify(values[owner], ELECT))
            yield self._go(state, ("operator", 0, "deletes /controller"), free | {owner: notified_owner})

    def _started(self, controller: int) -> ControllerSession:
        """A process that has started its election."""
        return ControllerSession(self.subjects[controller].fresh, ARMED | ELECT, 0, 0)

    def _without_role(self, values: list[Any], controller: int) -> Changes:
        """Release the role if ``controller`` owns it, and notify the other processes."""
        if values[0].owner != controller:
            return {}
        changes = {0: self._number(0, values[0]._replace(owner=0))}
        for other in self._numbered:
            if other != controller:
                changes[other] = self._number(other, storage.notify(values[other], ELECT))
        return changes

    def _drop_requests(self, values: list[Any], controller: int, changes: Changes) -> None:
        """Complete all pending requests to this controller with None."""
        for index in range(_BROKERS, _FACTS):
            broker: SearchBroker = values[index]
            if broker.queued_proposal is not None and abs(broker.queued_proposal.controller) == controller:
                broker = broker._replace(queued_proposal=None)
            if abs(broker.shutdown_request[0]) == controller:
                broker = broker._replace(shutdown_request=(0, 0))
            changes[index] = self._number(index, broker)

    # -- Results of a step.

    def _go(self, state: State, label: Label, changes: Changes, broken: tuple[str, ...] = ()) -> Successor:
        after = list(state)
        for index, number in changes.items():
            after[index] = number
        if self.options.record:
            key = after[0], *after[_BROKERS:]
            known = self._records.get(key)
            if known is None:
                known = self._records[key] = self._record(key)
            after[_FACTS] = known[0]
            broken += known[1]
        return Successor(label, tuple(after), broken)

    def _record(self, key: tuple[int, ...]) -> tuple[int, tuple[str, ...]]:
        """Mark the record as committed as soon as it is; from then on every stored leader must have it."""
        stored, *brokers, facts = (
            self._pool[index].values[number] for index, number in zip((0, 9, 10, 11, 12), key, strict=True)
        )
        if not facts.committed:
            least = self.options.min_isr
            if not any(rules.commits(broker_id, item, least) for broker_id, item in zip(BROKERS, brokers, strict=True)):
                return key[-1], ()
            facts = facts._replace(committed=True)
        broken = () if self.options.unclean else tuple(invariants.committed_record_stays(stored, brokers))
        return self._number(_FACTS, facts), broken

    def _at_rest(self, values: list[Any]) -> list[str] | None:
        stored, brokers = values[0], values[_BROKERS:_FACTS]
        zombie = any(item.up != bool(epoch) for item, epoch in zip(brokers, stored.registered, strict=True))
        if zombie or any(broker.queued_proposal or broker.shutdown_request[0] for broker in brokers):
            return None
        if all(values[controller].flags & DOWN for controller in self._numbered):
            return None
        node = self.subjects[stored.owner].nodes[values[stored.owner].node] if stored.owner else None
        return list(invariants.at_rest(stored, brokers, node))


def _named(action: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    names = {"alter": "AlterPartition of", "leave": "ControlledShutdown of", "move": "reassignment to"}
    return arguments if action[0] == "take" else (names[action[0]], *arguments)
