"""What the controller must answer to heartbeats, and when sessions end: a plain model of Kafka 4.4's broker states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kframe.errors import ErrorCode
from kframe.plugin.kraft import ControllerResult, RecordAndVersion, records
from kframe.plugin.kraft_controller import Heartbeats, RequestRefused, broker_events
from verification.kraft.simulation.expected.responses import difference, error_of, is_stale
from verification.kraft.simulation.image import Image, PartitionKey, PartitionState, merged
from verification.kraft.simulation.requests import Decided

#: The level of metadata.version from which log directories are stored.
DIRECTORIES_LEVEL: Final = 17
#: The level of metadata.version from which cordoned directories are stored.
CORDONED_LEVEL: Final = 30
_FENCED, _UNFENCED, _STOPPING, _STOPPED = "fenced", "unfenced", "in controlled shutdown", "may stop"
#: Changes of partitions, at one place of a decision.
CHANGES: Final = None


def compare_memory(heartbeats: Heartbeats, image: Image, end: int, decided: Decided | None) -> str | None:
    """What the controller remembers of brokers and sessions before a decision."""
    soft = image.soft
    expected = {
        broker_id: (memory.fenced, memory.applied, memory.shutdown_offset) for broker_id, memory in soft.brokers.items()
    }
    remembered = {
        broker_id: (state.fenced, state.metadata_offset, state.controlled_shutdown_offset)
        for broker_id, state in heartbeats.brokers.items()
    }
    return difference((expected, soft.contacts), (remembered, heartbeats.contact_ns))


def compare_arrival(
    heartbeat: broker_events.BrokerHeartbeat, is_committed: bool, image: Image, end: int, decided: Decided
) -> str | None:
    """A heartbeat prolongs its session when it arrives. One that changes nothing is answered at once, at the latest
    when all records are committed."""
    session, soft = (heartbeat.broker_id, heartbeat.broker_epoch), image.soft
    if session in soft.contacts:
        soft.contacts[session] = soft.now_ns
    reply = None if isinstance(decided, RequestRefused) else decided.response
    if is_stale(image, *session):
        return difference(None, reply)
    state, expected = _decide(heartbeat, image)
    is_steady = state == _UNFENCED and image.brokers[heartbeat.broker_id].is_active and not expected
    if reply is None:
        return "a heartbeat waits that changes nothing" if is_steady and is_committed else None
    soft.touch(heartbeat.broker_id, fenced=False, applied=heartbeat.metadata_offset)
    return difference(_reply(heartbeat, image, state) if is_steady else None, reply)


def compare_heartbeat(
    heartbeat: broker_events.BrokerHeartbeat, ends_sessions: bool, image: Image, end: int, decided: Decided
) -> str | None:
    """The response to BrokerHeartbeat, and its records. ``ends_sessions``: a process that may stop has none."""
    session, soft = (heartbeat.broker_id, heartbeat.broker_epoch), image.soft
    soft.contacts[session] = soft.now_ns
    if is_stale(image, *session):
        return difference(ErrorCode.STALE_BROKER_EPOCH, error_of(decided))
    if isinstance(decided, RequestRefused):
        return f"a heartbeat is refused: {decided}"
    state, expected = _decide(heartbeat, image)
    problem = difference(_reply(heartbeat, image, state), decided.response) or compare_parts(expected, decided)
    if expected and state != _UNFENCED:
        problem = problem or remaining_roles(image, heartbeat.broker_id, decided)
    problem = problem or _offline_roles(image, heartbeat, decided)
    soft.touch(heartbeat.broker_id, fenced=state in (_FENCED, _STOPPED), applied=heartbeat.metadata_offset)
    memory = soft.brokers[heartbeat.broker_id]
    if state == _STOPPING and not memory.is_stopping:
        memory.shutdown_offset = end + len(decided.records) - 1
    if state == _STOPPED and ends_sessions:
        del soft.contacts[session]
    return problem


def _reply(heartbeat: broker_events.BrokerHeartbeat, image: Image, state: str) -> broker_events.BrokerHeartbeatReply:
    is_caught_up = heartbeat.metadata_offset >= image.soft.registered[heartbeat.broker_id]
    return broker_events.BrokerHeartbeatReply(
        is_caught_up, state in (_FENCED, _STOPPED), state == _STOPPING, state == _STOPPED
    )


def _decide(heartbeat: broker_events.BrokerHeartbeat, image: Image) -> tuple[str, list[RecordAndVersion | None]]:
    """The next state of the broker, and the records on the way to it."""
    broker_id = heartbeat.broker_id
    memory, registration = image.soft.brokers[broker_id], image.brokers[broker_id]
    current = _STOPPING if memory.is_stopping else _FENCED if memory.fenced else _UNFENCED
    state = _next_state(heartbeat, image, current)
    expected: list[RecordAndVersion | None] = []
    if state != current and state == _UNFENCED:
        expected += [change(image, broker_id, 0, fenced=records.FencingChange.UNFENCE), CHANGES]
    elif state != current and state == _STOPPING:
        # After a failover it is known from the log.
        expected += [] if registration.in_shutdown else [change(image, broker_id, 1, in_controlled_shutdown=1)]
        expected += [CHANGES]
    elif state != current:
        expected += [CHANGES, change(image, broker_id, 0, fenced=records.FencingChange.FENCE)]
    online = [each for each in registration.directories if each not in heartbeat.offline_directories]
    if len(online) < len(registration.directories):
        expected += [CHANGES, change(image, broker_id, 2, log_dirs=tuple(sorted(online)))]
    cordoned = None if image.features["metadata.version"] < CORDONED_LEVEL else heartbeat.cordoned_directories
    if cordoned is not None and (registration.cordoned is None or set(registration.cordoned) != set(cordoned)):
        expected += [change(image, broker_id, 3, cordoned_log_dirs=cordoned)]
    return state, expected


def _next_state(heartbeat: broker_events.BrokerHeartbeat, image: Image, current: str) -> str:
    soft, broker_id = image.soft, heartbeat.broker_id
    leads = any(state.leader == broker_id for state in image.partitions.values())
    stops, wants_fence = heartbeat.want_shut_down, heartbeat.want_fence
    if current == _STOPPING:
        lowest = soft.lowest_applied()
        has_to_wait = leads or (lowest is not None and lowest < soft.brokers[broker_id].shutdown_offset)
        return _STOPPING if has_to_wait else _STOPPED
    if current == _FENCED:
        is_behind = heartbeat.metadata_offset < soft.registered[broker_id]
        return _STOPPED if stops else _FENCED if wants_fence or is_behind else _UNFENCED
    if stops:
        return _STOPPING if leads and not wants_fence else _STOPPED
    return _FENCED if wants_fence else _UNFENCED


def change(image: Image, broker_id: int, version: int, **fields: Any) -> RecordAndVersion:
    """The record of a change of a registration."""
    epoch = image.brokers[broker_id].broker_epoch
    record = records.BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **fields)
    return RecordAndVersion(record, version)


def compare_parts(expected: Sequence[RecordAndVersion | None], decided: ControllerResult[Any]) -> str | None:
    """Compare the records of a decision. Changes of partitions may be where CHANGES are."""
    waiting = list(expected)
    for each in decided.records:
        if isinstance(each.record, records.PartitionChangeRecord):
            if waiting[:1] == [CHANGES]:
                continue
            return f"the controller writes {decided.records}, expected {expected}"
        while waiting[:1] == [CHANGES]:
            del waiting[0]
        if waiting[:1] != [each]:
            return f"the controller writes {decided.records}, expected {expected}"
        del waiting[0]
    missing = [each for each in waiting if each is not CHANGES]
    return f"the controller writes {decided.records}, expected {missing} too" if missing else None


def states_after(image: Image, decided: ControllerResult[Any]) -> dict[PartitionKey, PartitionState]:
    """The states that a decision leaves of partitions that it changes."""
    states: dict[PartitionKey, PartitionState] = {}
    for each in decided.records:
        if isinstance(each.record, records.PartitionChangeRecord):
            key = each.record.topic_id, each.record.partition_id
            states[key] = merged(states.get(key, image.partitions[key]), each.record)
    return states


def remaining_roles(image: Image, broker_id: int, decided: ControllerResult[Any]) -> str | None:
    """A broker that is fenced or stops leads nothing, and is in no ISR with others."""
    after = states_after(image, decided)
    for key, before in image.partitions.items():
        state = after.get(key, before)
        if state.has_role(broker_id):
            return f"broker {broker_id} keeps its role in {key}: {state}"
    return None


def _offline_roles(
    image: Image, heartbeat: broker_events.BrokerHeartbeat, decided: ControllerResult[Any]
) -> str | None:
    """Neither is one with a replica in a directory that has just failed, unless the same heartbeat unfences it."""
    broker_id = heartbeat.broker_id
    if image.brokers[broker_id].fenced:
        return None
    lost = {*image.brokers[broker_id].directories} & {*heartbeat.offline_directories}
    after = states_after(image, decided) if lost else {}
    for key, before in image.partitions.items() if lost else ():
        state = after.get(key, before)
        if state.has_role(broker_id) and before.directory_of(broker_id) in lost:
            return f"broker {broker_id} keeps its role in {key}, whose directory has failed: {state}"
    return None


def compare_expiry(image: Image, end: int, decided: Decided) -> str | None:
    """A check of sessions ends that which expired first, and fences the broker if its registration is of that epoch."""
    soft = image.soft
    soft.after_pause()
    if isinstance(decided, RequestRefused):
        return f"a check of sessions is refused: {decided}"
    expired = sorted(filter(soft.is_expired, soft.contacts), key=lambda session: (soft.contacts[session], session))
    expected: list[RecordAndVersion | None] = []
    if expired:
        broker_id, epoch = expired[0]
        del soft.contacts[broker_id, epoch]
        if broker_id not in image.brokers:
            soft.brokers.pop(broker_id, None)
        elif not is_stale(image, broker_id, epoch):
            soft.brokers[broker_id].fenced = True
            expected = [CHANGES, change(image, broker_id, 0, fenced=records.FencingChange.FENCE)]
    problem = difference(bool(expired), decided.response) or compare_parts(expected, decided)
    return problem or (remaining_roles(image, broker_id, decided) if expected else None)
