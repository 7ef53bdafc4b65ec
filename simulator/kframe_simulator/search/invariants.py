"""Invariants of the small space (``docs/reference/invariants.md``), each a function that yields violations.

In every state or step: I1 to I6, I8 to I10, I14 to I18, I21, I22, I25, I26, I28, I29. At rest: I12, L1 to L3, L6. With
unclean election, I7 replaces I6 and I10. Not checked: I11 (there is one record), I13 (channels are queues by
construction), I19, I20, I23 (topics are fixed), I27, I30 (time).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kframe.core.state_machines.transitions import PARTITION_TRANSITIONS, REPLICA_TRANSITIONS
from kframe.model.ids import PartitionState
from kframe_simulator.search.subject import CoreState
from kframe_simulator.search.values import BROKERS, NO_LEADER, ControllerSession, Message, SearchBroker, Stored

#: Reasons to release the role that are no failure.
_EXPECTED_RESIGNATIONS: Final = {"our session with storage expired", "our session does not hold the role any more"}


def written(before: Stored, after: Stored, process: ControllerSession, node: CoreState, unclean: bool) -> Iterator[str]:
    """Violations of a state write. ``node`` is the writer before the write."""
    if after.state_epoch != process.claim or process.claim != before.controller_epoch:
        yield f"I2: a write under controller epoch {after.state_epoch}, while {before.controller_epoch} is in office"
    yield from _members(after)
    by_leader = 1 <= process.task <= 3 and after.leader_epoch == before.leader_epoch
    if after.leader_epoch != before.leader_epoch + (0 if by_leader else 1):
        yield f"I8: leader epoch {before.leader_epoch} becomes {after.leader_epoch}"
    if by_leader:
        if after.leader != before.leader or after.leader != process.task:
            yield f"I8: an AlterPartition of broker {process.task} makes leader {before.leader} {after.leader}"
        joined = [member for member in after.isr if member not in before.isr and member not in _eligible(node)]
        if joined:
            yield f"I4: {joined} join the ISR, registered are {node.known}, shutting down {node.shutting_down}"
        return
    if not set(after.isr) <= set(before.isr) and not unclean:
        yield f"I6: the controller itself adds to the ISR, {before.isr} to {after.isr}"
    if after.leader not in (NO_LEADER, before.leader):
        yield from _elected(before, after, node, unclean)


def _last(after: Stored) -> bool:
    """Whether the ISR has one member and no leader. As in Kafka, that member stays even if it is unassigned."""
    return after.leader == NO_LEADER and len(after.isr) == 1


def _members(after: Stored) -> Iterator[str]:
    if (
        not after.isr
        or len(set(after.isr)) != len(after.isr)
        or (not set(after.isr) <= set(after.assigned) and not _last(after))
    ):
        yield f"I5: ISR {after.isr}"
    elif after.leader != NO_LEADER and after.leader not in after.isr:
        yield f"I4, I5: leader {after.leader} is not in ISR {after.isr}"


def _eligible(node: CoreState) -> list[int]:
    return [item for item, epoch in zip(BROKERS, node.known, strict=True) if epoch and item not in node.shutting_down]


def _elected(before: Stored, after: Stored, node: CoreState, unclean: bool) -> Iterator[str]:
    eligible = _eligible(node)
    if after.leader not in eligible:
        yield f"I4: leader {after.leader} is elected, eligible are {eligible}"
    clean = [member for member in before.assigned if member in eligible and member in before.isr]
    staying = [member for member in clean if member in node.assigned[0]]
    if clean and after.leader not in (clean[0], *staying[:1]):
        yield f"I6: leader {after.leader} is elected, the first eligible of ISR {before.isr} is {clean[0]}"
    if not clean and not unclean:
        yield f"I6: leader {after.leader} is elected from outside ISR {before.isr}"
    if not clean and (after.isr != (after.leader,) or after.recovery != 1):
        yield f"I7: after an unclean election ISR {after.isr}, recovery {after.recovery}"


def assigned(before: Stored, after: Stored, process: ControllerSession, target: tuple[int, ...]) -> Iterator[str]:
    """I21 and I22: the assignment changes for an operator's request. It also changes when its target is in sync."""
    old, new = _assignment(before), _assignment(after)
    if old == new:
        return
    cancelled = not after.adding and set(after.assigned) == set(before.assigned) - set(before.adding)
    ended = not after.adding and not after.removing and not cancelled
    if process.task != 20 and not ended:
        yield f"I21: assignment {old} becomes {new}"
    if ended and after.assigned != target:
        yield f"I21: assignment {old} ends as {new}, asked for was {target}"
    if ended and not set(target) <= set(before.isr):
        yield f"I22: assignment {old} ends with ISR {before.isr}"


def _assignment(stored: Stored) -> tuple[tuple[int, ...], ...]:
    return stored.assigned, stored.adding, stored.removing


def batch_is_valid(
    messages: Sequence[tuple[int, Message]], node: CoreState, process: ControllerSession, not_contacted: set[int]
) -> Iterator[str]:
    """Violations of a batch. ``node`` is the core at the send. ``not_contacted`` are connected brokers without a
    request so far."""
    for broker, message in messages:
        yield from _message(broker, message, node, process, broker in not_contacted)
        not_contacted.discard(broker)


def _message(broker: int, message: Message, node: CoreState, process: ControllerSession, first: bool) -> Iterator[str]:
    kind, controller_epoch, broker_epoch = message[:3]
    if controller_epoch != process.claim:
        yield f"I1: a request under controller epoch {controller_epoch} by the one of {process.claim}"
    if not node.known[broker - 1] or broker_epoch != node.known[broker - 1]:
        yield f"I15, I17: a request for broker {broker} of epoch {broker_epoch}, known are {node.known}"
    registered = {item for item, epoch in zip(BROKERS, node.known, strict=True) if epoch}
    if first and (kind != "U" or set(message[3]) != registered):
        yield f"I14: the first request for broker {broker} is {message}, alive are {sorted(registered)}"
    if kind == "U" and not set(message[3]) <= registered:
        yield f"I17: brokers {message[3]} are sent as live, known are {node.known}"
    if kind == "L" and (message[3:8] != _as_sent(node)):
        yield f"I12: broker {broker} is sent {message}, remembered is {node.state}"
    replicas, _, removing = node.assigned
    if kind == "S" and message[4] and ((broker in replicas and broker not in removing) or broker in node.state[2]):
        yield f"I18: broker {broker} is to delete its replica, assigned are {replicas}, in sync {node.state[2]}"


def _as_sent(node: CoreState) -> tuple[Any, ...]:
    leader, leader_epoch, isr, _, _, partition_epoch = node.state
    return leader, leader_epoch, tuple(isr), partition_epoch, node.assigned[0]


def transitions_are_valid(before: CoreState, after: CoreState) -> Iterator[str]:
    """I25: the state transitions between two nodes."""
    if not (before.active and after.active and before.replica_states):
        return
    (partition, replicas), (partition_now, replicas_now) = before.replica_states, after.replica_states
    if partition != PartitionState.NON_EXISTENT and not _is_reachable(PARTITION_TRANSITIONS, partition, partition_now):
        yield f"I25: the partition goes from {partition.name} to {partition_now.name}"
    for broker, state in replicas:
        now = dict(replicas_now).get(broker)
        if now is not None and state.name != "NON_EXISTENT" and not _is_reachable(REPLICA_TRANSITIONS, state, now):
            yield f"I25: the replica on {broker} goes from {state.name} to {now.name}"


def _is_reachable(transitions: Any, start: Any, end: Any) -> bool:
    """Whether legal transitions lead from start to end. No path leads through NonExistent: a deleted replica has no
    state."""
    visited, pending = {start}, [start]
    while pending:
        successors = {
            successor for successor in transitions[pending.pop()] - visited if successor.name != "NON_EXISTENT"
        }
        visited |= successors
        pending += successors
    return end in visited


def acted(acts: Sequence[tuple[Any, ...]], process: ControllerSession, failed: bool, over: bool) -> Iterator[str]:
    """I26 and I29: missing responses and unexplained actions of the core in a step. ``failed``: storage had failed;
    ``over``: the operation has ended."""
    replies = [content[0] for kind, *content in acts if kind == "reply"]
    if process.task and replies not in (([process.task],) if over else ([], [process.task])):
        yield f"I26: the request {process.task} got {replies}"
    for kind, *content in acts:
        if kind == "raised" or (kind == "resigned" and not failed and content[0] not in _EXPECTED_RESIGNATIONS):
            yield f"I29: the core failed: {content[0]}"


def silent(message: tuple[Any, ...], node: CoreState, process: ControllerSession) -> Iterator[str]:
    """I3: a process that knows of its lost role is no controller."""
    lost = message[0] == "SessionExpired" or (message[:2] == ("done", "ReadController") and not message[3])
    if lost and node.active:
        yield f"I3: still controller under epoch {node.controller_epoch}, although the loss of the role was notified"


def remembered(node: CoreState, process: ControllerSession, stored: Stored) -> Iterator[str]:
    """I9 and I24, between two events: the last writer remembers its write."""
    if not node.active or stored.state_epoch != node.controller_epoch or process.claim != node.controller_epoch:
        return
    state = (stored.leader, stored.leader_epoch, stored.isr, stored.recovery, stored.state_epoch, stored.version)
    if node.state != state:
        yield f"I9: stored is {state}, its writer remembers {node.state}"
    if process.claim == stored.controller_epoch and node.assigned != _assignment(stored):
        yield f"I9: assigned is {_assignment(stored)}, the controller remembers {node.assigned}"


def committed_record_stays(stored: Stored, brokers: Sequence[SearchBroker]) -> Iterator[str]:
    """I10, in every state with a committed record."""
    if stored.leader != NO_LEADER and not brokers[stored.leader - 1].has_record:
        yield f"I10: leader {stored.leader} of epoch {stored.leader_epoch} lacks the committed record"


def at_rest(stored: Stored, brokers: Sequence[SearchBroker], node: CoreState | None) -> Iterator[str]:
    """I12, L1 to L3 and L6, when nothing is in progress. ``node`` is the role owner's."""
    if node is None or not node.active:
        yield "L2: no controller is active"
        return
    if node.known != stored.registered:
        yield f"L6: registered are {stored.registered}, the controller knows {node.known}"
    eligible = [member for member in stored.isr if stored.registered[member - 1] and member not in node.shutting_down]
    if eligible and (stored.leader == NO_LEADER or not stored.registered[stored.leader - 1]):
        yield f"L1: leader {stored.leader}, although {eligible} of the ISR are able"
    if stored.leader == NO_LEADER or not stored.registered[stored.leader - 1]:
        return
    target = {member for member in stored.assigned if member not in stored.removing}
    if (stored.adding or stored.removing) and target <= set(stored.isr):
        yield f"L3: {_assignment(stored)} does not end, ISR {stored.isr}"
    for member in stored.assigned:
        broker = brokers[member - 1]
        followed, elected = (broker.leader, broker.leader_epoch), (stored.leader, stored.leader_epoch)
        if stored.registered[member - 1] and member not in node.shutting_down and followed != elected:
            yield f"I12: broker {member} follows {followed}, stored is {elected}"
