"""Invariants of AlterPartition responses: the condition of each error code (I15, I26).

The source is Kafka 3.9 ``KafkaController.tryProcessAlterPartition``. Codes are compared with storage and with the
controller's last UpdateMetadata, because a controller may decide from memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kframe.errors import ErrorCode
from kframe.model.events import TopicPartition
from kframe.model.ids import NO_BROKER_EPOCH
from kframe_simulator.replication.control_requests import Row
from kframe_simulator.simulation.observations import AlterPartitionCompleted
from kframe_simulator.simulation.watch import Watch


class ProposalResult(NamedTuple):
    """One partition of a request, and its error code in the response."""

    position: int
    key: TopicPartition | None
    """None: storage has no topic with this id."""
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    code: ErrorCode


def _proposals(watch: Watch, completed: AlterPartitionCompleted) -> Iterator[ProposalResult]:
    event, codes = completed.event, completed.response.codes.tolist()
    known = watch.simulation.ensemble.topic_ids
    by_id = {topic_id: name for topic_id, name in watch.ids_used.items() if not any(known.get(name, b"1"))}
    by_id.update((topic_id, name) for name, topic_id in known.items())
    named = Counter(event.partitions)
    for position, (topic, number) in enumerate(event.partitions):
        name = topic if isinstance(topic, str) else by_id.get(topic)
        if named[topic, number] == 1:
            yield ProposalResult(
                position,
                None if name is None else (name, number),
                int(event.leader_epoch[position]),
                int(event.partition_epoch[position]),
                tuple(event.isr[position].tolist()),
                ErrorCode(codes[position]),
            )


def senders_are_registered(watch: Watch, completed: AlterPartitionCompleted) -> str | None:
    """I15: a request is refused for its broker epoch if, and only if, it comes from an earlier registration."""
    event, error = completed.event, completed.response.error
    if error not in (ErrorCode.NONE, ErrorCode.STALE_BROKER_EPOCH):
        return None
    known = watch.observed.registered(completed.process).get(event.broker_id)
    if (error is ErrorCode.NONE) != (known == event.broker_epoch):
        return f"broker {event.broker_id} of epoch {event.broker_epoch} got {error.name}, registered is {known}"
    return None


def proposals_get_valid_codes(watch: Watch, completed: AlterPartitionCompleted) -> str | None:
    """I26: each proposal gets the error code for its epochs and members. An accepted one gets the stored state."""
    event, response = completed.event, completed.response
    if response.error is not ErrorCode.NONE:
        return None
    if len(response.codes) != len(event.partitions):
        return f"{len(event.partitions)} partitions were requested, {len(response.codes)} returned"
    for proposal in _proposals(watch, completed):
        row = None if proposal.key is None else watch.simulation.ensemble.rows.get(proposal.key)
        problem = _unknown(watch, completed, proposal) if row is None else _wrong(watch, completed, proposal, row)
        if problem:
            return f"{proposal.key}: a proposal of {event.broker_id} got {proposal.code.name}, although {problem}"
    return None


def _unknown(watch: Watch, completed: AlterPartitionCompleted, proposal: ProposalResult) -> str | None:
    """The problem with the response for a topic that storage does not have. Only the current controller must return
    UNKNOWN_TOPIC_ID: another controller may have deleted the topic, or given it another id (X5). A deposed controller
    returns NONE for a state that it knows, as Kafka does."""
    if proposal.key is not None:
        return None
    topic, number = completed.event.partitions[proposal.position]
    if proposal.code is ErrorCode.NONE:
        name = topic if isinstance(topic, str) else watch.ids_used.get(topic, "")
        known = watch.observed.deleted_states(completed.process, (name, number))
        if isinstance(topic, bytes) and watch.observed.has_later_id(completed.process, name, topic):
            known = known | watch.observed.stored.get((name, number), set())
        sent = completed.event.broker_id, proposal.leader_epoch, proposal.isr
        valid = sent in {state[:3] for state in known}
    else:
        valid = proposal.code is ErrorCode.UNKNOWN_TOPIC_ID or not watch.observed.in_term(completed.process)
    return None if valid else "storage has no topic of this id"


def _wrong(watch: Watch, completed: AlterPartitionCompleted, proposal: ProposalResult, row: Row) -> str | None:
    """The problem with the error code, or None. A deposed controller may know a deleted topic of the same name."""
    event, process = completed.event, completed.process
    known = watch.observed.of_term(process).announced.get(row.key)
    if known is not None:
        newer = proposal.leader_epoch > known.leader_epoch or proposal.partition_epoch > known.partition_epoch
        if proposal.code is ErrorCode.NOT_CONTROLLER and not newer:
            return f"it knows no more than what was announced, {known}"
        if proposal.leader_epoch < known.leader_epoch and not newer and proposal.code in _LATER_CHECKS:
            return f"it is of leader epoch {proposal.leader_epoch}, announced was {known.leader_epoch}"
    earlier = watch.observed.deleted_states(process, row.key)
    fenced_by = max([row.leader_epoch, *(leader_epoch for _, leader_epoch, _, _ in earlier)])
    if proposal.code is ErrorCode.FENCED_LEADER_EPOCH and proposal.leader_epoch >= fenced_by:
        return f"it is of leader epoch {proposal.leader_epoch}, stored is {row.leader_epoch}"
    if proposal.code in (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED):
        return _all_eligible(watch, completed, proposal)
    if not watch.observed.in_term(process) or row.key in watch.rewritten:
        return None
    same = (event.broker_id, proposal.leader_epoch, proposal.isr) == (row.leader, row.leader_epoch, row.isr)
    if proposal.code is ErrorCode.INVALID_UPDATE_VERSION and same:
        return f"isr {row.isr} of leader epoch {row.leader_epoch} is stored"
    return _another_state(completed, proposal, row) if proposal.code is ErrorCode.NONE else None


def _all_eligible(watch: Watch, completed: AlterPartitionCompleted, proposal: ProposalResult) -> str | None:
    """A member is refused only if it is dead, shutting down or registered again."""
    registered, live = watch.observed.registered(completed.process), watch.observed.live(completed.process)
    event, offsets = completed.event, completed.event.isr.offsets
    epochs = (
        ()
        if event.isr_epochs is None
        else event.isr_epochs[offsets[proposal.position] : offsets[proposal.position + 1]]
    )
    sent_epochs = dict(zip(proposal.isr, (int(epoch) for epoch in epochs), strict=False))
    reregistered = [
        member for member, epoch in sent_epochs.items() if epoch not in (NO_BROKER_EPOCH, registered.get(member))
    ]
    return None if reregistered or not set(proposal.isr) <= live else f"all of isr {proposal.isr} are live"


def _another_state(completed: AlterPartitionCompleted, proposal: ProposalResult, row: Row) -> str | None:
    """An accepted proposal is stored, and the response has the stored state."""
    states = completed.response.states
    if proposal.leader_epoch != row.leader_epoch or proposal.isr != row.isr:
        return f"isr {row.isr} of leader epoch {row.leader_epoch} is stored"
    if states is None or not states.exists[proposal.position]:
        return "the response has no state"
    sent = int(states.leader_epoch[proposal.position]), int(states.partition_epoch[proposal.position])
    stored = row.leader_epoch, row.partition_epoch
    return None if sent == stored else f"the response has epochs {sent}, storage {stored}"


#: Error codes that only a proposal of the current leader epoch gets.
_LATER_CHECKS = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
