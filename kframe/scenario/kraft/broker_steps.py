"""The steps of brokers: processes, heartbeats, directories and what partition leaders ask for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kframe.core.kraft.alter_partition import IsrResult, KraftIsrProposal, alter_partitions
from kframe.core.kraft.decision import RequestRefused
from kframe.core.kraft.directories import DirectoryAssignment, assign_directories
from kframe.core.kraft.node_requests import allocate_producer_ids
from kframe.errors import ErrorCode
from kframe.model.kraft.views import partition_record
from kframe.scenario.fields import Empty
from kframe.scenario.kraft.arguments import (
    BrokerDirectories,
    DirectoryAssignments,
    Heartbeat,
    IsrChange,
    RegistrationOptions,
    ShutdownOptions,
)
from kframe.scenario.kraft.brokers import HeartbeatingBroker, ProcessState
from kframe.scenario.kraft.names import RESERVED
from kframe.scenario.kraft.playing import TICK_NS, KraftPlay
from kframe.scenario.kraft.quorum import SECOND

#: Between two attempts of a process to register while the session of its predecessor lasts.
RETRY_NS = SECOND // 10


def split_partition(name: str) -> tuple[str, int]:
    """Topic and number of ``topic-partition``."""
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def by_partition(answers: dict[str, Any]) -> dict[str, Any]:
    """Answers in the order of topics and partitions."""
    return dict(sorted(answers.items(), key=lambda item: split_partition(item[0])))


# --- processes


def register(play: KraftPlay, argument: list[int | RegistrationOptions]) -> dict[str, str]:
    """Register a new process of each broker."""
    answers = {}
    for item in argument:
        options = RegistrationOptions(id=item) if isinstance(item, int) else item
        broker, error = _register(play, options)
        answers[str(broker.broker_id)] = error
        if error == "NONE" and not options.same_incarnation and not options.silent:
            broker.state = ProcessState.STARTING
    return answers


def _register(play: KraftPlay, options: RegistrationOptions) -> tuple[HeartbeatingBroker, str]:
    broker = play.fleet.configure(options)
    process = broker.incarnation, broker.offline, broker.applied_offset
    if not options.same_incarnation or broker.incarnation is None:
        play.fleet.start_process(broker)
    if options.behind:
        broker.applied_offset = 0
    directories = None
    if options.directory_ids is not None:
        directories = [RESERVED.get(symbol) or play.names.directory(symbol) for symbol in options.directory_ids]
    error = play.fleet.register(broker, options.cluster_id, options.previous_epoch, directories)
    if error != "NONE" and broker.state is not ProcessState.STOPPED:  # The process that runs is another one.
        broker.incarnation, broker.offline, broker.applied_offset = process
    return broker, error


def start(play: KraftPlay, argument: list[int | RegistrationOptions]) -> dict[str, Any]:
    """Register each broker, again while the session of its former process lasts, and unfence it."""
    answers: dict[str, Any] = {}
    for item in argument:
        options = RegistrationOptions(id=item) if isinstance(item, int) else item
        broker, error = _register(play, options)
        deadline = play.quorum.now_ns + 2 * play.quorum.timers.session_ns + 5 * SECOND
        while error == ErrorCode.DUPLICATE_BROKER_REGISTRATION.name and play.quorum.now_ns < deadline:
            play.pass_time(RETRY_NS)
            error = play.fleet.register(broker)
        answers[str(broker.broker_id)] = error
        if error == "NONE":
            broker.state = ProcessState.STARTING
            answers |= unfence(play, [broker.broker_id])
    return answers


def restart(play: KraftPlay, argument: list[int]) -> dict[str, str]:
    """Register a new process when the session of the old one has ended and the controller has not fenced it yet."""
    answers = {}
    for broker_id in argument:
        broker = play.fleet.get(broker_id)
        if broker.state is not ProcessState.STOPPED:
            play.fleet.heartbeat(broker)
        session = broker_id, broker.epoch
        broker.stop(wait=False)
        play.fleet.start_process(broker)
        heartbeats, quorum = play.quorum.context.heartbeats, play.quorum
        while heartbeats.has_valid_session(*session, quorum.now_ns):
            end = heartbeats.contact_ns[session] + heartbeats.session_timeout_ns
            if end >= quorum.now_ns + TICK_NS:
                play.tick()
            else:
                quorum.now_ns = end + 1
        answers[str(broker_id)] = play.fleet.register(broker)
        broker.state = ProcessState.STARTING
    return answers


def unfence(play: KraftPlay, argument: list[int]) -> dict[str, Any]:
    """The brokers ask to be unfenced from now on."""
    return {str(broker_id): _heartbeat_as(play, broker_id, ProcessState.RUNNING) for broker_id in argument}


def fence(play: KraftPlay, argument: list[int]) -> dict[str, Any]:
    """The brokers ask to be fenced from now on."""
    return {str(broker_id): _heartbeat_as(play, broker_id, ProcessState.STARTING) for broker_id in argument}


def _heartbeat_as(play: KraftPlay, broker_id: int, state: ProcessState) -> dict[str, Any]:
    broker = play.fleet.get(broker_id)
    broker.state = state
    return play.fleet.heartbeat(broker)


def stop_heartbeats(play: KraftPlay, argument: list[int]) -> None:
    """The brokers fall silent in this order, a quarter of a session apart."""
    for broker_id in argument:
        broker = play.fleet.get(broker_id)
        if broker.state is ProcessState.STOPPED:
            continue
        play.fleet.heartbeat(broker)
        broker.stop()
        if len(argument) > 1:
            play.pass_time(play.quorum.timers.session_ns // 4)


def stop_uncleanly(play: KraftPlay, argument: list[int]) -> None:
    """The processes die; the end of their sessions is not awaited."""
    for broker_id in argument:
        play.fleet.get(broker_id).stop(wait=False)


def begin_shutdown(play: KraftPlay, argument: list[int] | ShutdownOptions) -> None:
    """The brokers ask for controlled shutdown in every heartbeat."""
    waits = argument.wait if isinstance(argument, ShutdownOptions) else True
    for broker_id in shutting_down(argument):
        broker = play.fleet.get(broker_id)
        broker.answers = []
        broker.state, broker.waits_for_session = ProcessState.STOPPING, waits
        play.fleet.heartbeat(broker)


def shutting_down(argument: list[int] | ShutdownOptions) -> list[int]:
    """The brokers of a shutdown."""
    return argument.brokers if isinstance(argument, ShutdownOptions) else argument


def heartbeat(play: KraftPlay, argument: Heartbeat) -> dict[str, Any]:
    """One heartbeat as given."""
    return play.fleet.heartbeat_with(play.fleet.configure(RegistrationOptions(id=argument.broker)), argument)


def lag(play: KraftPlay, argument: list[int]) -> None:
    """These brokers apply nothing more of the log."""
    for broker_id in argument:
        play.fleet.get(broker_id).applied_offset = play.quorum.end_offset - 1


def catch_up_metadata(play: KraftPlay, argument: list[int]) -> None:
    """These brokers apply the log again."""
    for broker_id in argument:
        play.fleet.get(broker_id).applied_offset = None


# --- directories


def lose_directories(play: KraftPlay, argument: BrokerDirectories) -> dict[str, Any]:
    """The broker loses these directories, and says so in each heartbeat."""
    broker = play.fleet.get(argument.broker)
    broker.offline = [*broker.offline, *argument.directories]
    return play.fleet.heartbeat(broker)


def cordon(play: KraftPlay, argument: BrokerDirectories) -> dict[str, Any]:
    """The broker names these directories, and no others, as cordoned."""
    broker = play.fleet.get(argument.broker)
    broker.cordoned = argument.directories
    return play.fleet.heartbeat(broker)


def assign(play: KraftPlay, argument: DirectoryAssignments) -> dict[str, Any]:
    """AssignReplicasToDirs. Assignments to one directory are together in the request."""
    broker = play.fleet.get(argument.broker)
    by_directory: dict[UUID, list[DirectoryAssignment]] = {}
    for name, symbol in argument.partitions.items():
        topic, partition = split_partition(name)
        directory = RESERVED.get(symbol) or play.names.directory(f"{broker.broker_id}.{symbol}")
        assignment = DirectoryAssignment(directory, topic_id_of(play, topic), partition)
        by_directory.setdefault(directory, []).append(assignment)
    assignments = [assignment for group in by_directory.values() for assignment in group]
    epoch = broker.epoch if argument.epoch is None else argument.epoch
    error, results = play.submit(
        "error", lambda context: assign_directories(context, broker.broker_id, epoch, assignments)
    )
    if results is None:
        return {"error": error}
    return by_partition({
        f"{play.names.topic(result.assignment.topic_id)}-{result.assignment.partition}": result.error.name
        for result in results
    })  # fmt: skip


def topic_id_of(play: KraftPlay, name: str) -> UUID:
    """The id of a topic by name; of an unknown topic an id that no record has brought."""
    topics = play.quorum.metadata.topics
    index = topics.index_by_name.get(name)
    return play.names.topic_id(name) if index is None else topics.ids[index]


# --- partition leaders


def alter_partition(play: KraftPlay, argument: dict[str, IsrChange]) -> dict[str, Any]:
    """One AlterPartition request for each sender, in the order in which the senders are first named."""
    requests: dict[tuple[int, int | None], dict[str, KraftIsrProposal]] = {}
    for name, change in argument.items():
        sender, proposal = _proposal(play, name, change)
        requests.setdefault((sender, change.sender_epoch), {})[name] = proposal
    answers: dict[str, Any] = {}
    for (sender, named_epoch), proposals in requests.items():
        known_epoch = play.fleet.brokers[sender].epoch if sender in play.fleet.brokers else 0
        answers |= _alter(play, sender, known_epoch if named_epoch is None else named_epoch, proposals)
    return {name: answers.get(name) for name in argument}


def _alter(play: KraftPlay, sender: int, epoch: int, proposals: dict[str, KraftIsrProposal]) -> dict[str, Any]:
    try:
        results: list[IsrResult] = play.quorum.submit(
            lambda context: alter_partitions(context, sender, epoch, list(proposals.values()))
        )
    except RequestRefused as refusal:
        return {name: {"error": refusal.error.name} for name in proposals}
    return {name: _altered(result) for name, result in zip(proposals, results, strict=True)}


def _altered(result: IsrResult) -> dict[str, Any]:
    if result.error is not ErrorCode.NONE:
        return {"error": result.error.name}
    return {
        "error": "NONE",
        "leader": result.leader,
        "leader_epoch": result.leader_epoch,
        "isr": list(result.isr),
        "leader_recovery_state": int(result.recovery),
        "partition_epoch": result.partition_epoch,
    }


def _proposal(play: KraftPlay, name: str, change: IsrChange) -> tuple[int, KraftIsrProposal]:
    topic, partition = split_partition(name)
    row = play.quorum.metadata.row(topic, partition)
    stored = None if row is None else partition_record(play.quorum.metadata, row)
    leader, leader_epoch, partition_epoch, recovery = (
        (-1, 0, 0, 0)
        if stored is None
        else (stored.leader, stored.leader_epoch, stored.partition_epoch, stored.leader_recovery_state)
    )
    epochs = {broker_id: broker.epoch for broker_id, broker in play.fleet.brokers.items()} | change.broker_epochs
    return leader if change.sender is None else change.sender, KraftIsrProposal(
        topic_id=topic_id_of(play, topic),
        partition=partition,
        isr=tuple((member, epochs.get(member, -1)) for member in change.isr),
        leader_epoch=leader_epoch if change.leader_epoch is None else change.leader_epoch,
        partition_epoch=partition_epoch if change.partition_epoch is None else change.partition_epoch,
        recovery=recovery if change.leader_recovery_state is None else change.leader_recovery_state,
    )


def catch_up(play: KraftPlay, argument: list[str] | Empty) -> dict[str, int]:
    """Each leader proposes its ISR with all replicas that are active. The answer counts partitions by error."""
    metadata = play.quorum.metadata
    proposals = {}
    for name, index in sorted(metadata.topics.index_by_name.items()):
        if isinstance(argument, list) and argument and name not in argument:
            continue
        for row in sorted(metadata.topics.rows_of(index).tolist()):
            record = partition_record(metadata, row)
            joining = [id for id in record.replicas if id not in record.isr and metadata.brokers.is_active(id)]
            if record.leader >= 0 and joining:
                proposals[f"{name}-{record.partition_id}"] = IsrChange([*record.isr, *joining])
    errors = [answer["error"] for answer in alter_partition(play, proposals).values()]
    return {error: errors.count(error) for error in sorted(set(errors))}


def allocate_ids(play: KraftPlay, argument: int) -> dict[str, Any]:
    """AllocateProducerIds of a broker."""
    epoch = play.fleet.get(argument).epoch
    error, block = play.submit("error", lambda context: allocate_producer_ids(context, argument, epoch))
    return {"error": error} if block is None else {"error": error, "start": block.start, "length": block.length}
