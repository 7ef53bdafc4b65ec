"""The steps of brokers: processes, heartbeats, directories and requests of partition leaders."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from kframe.core.kraft.brokers.producer_ids import allocate_producer_ids
from kframe.core.kraft.controller_result import RequestRefused
from kframe.core.kraft.replication.alter_partition import IsrResult, KraftIsrProposal, alter_partitions
from kframe.core.kraft.replication.directories import DirectoryAssignment, assign_directories
from kframe.errors import ErrorCode
from kframe.model.kraft.views import partition_record
from kframe.scenario.fields import Empty, split_partition
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
from kframe.scenario.kraft.playing import TICK_NS, KraftRun
from kframe.scenario.kraft.quorum import SECOND

#: Between two attempts of a process to register while the session of its predecessor lasts.
RETRY_NS = SECOND // 10


def by_partition(responses: dict[str, Any]) -> dict[str, Any]:
    """Responses in the order of topics and partitions."""
    return dict(sorted(responses.items(), key=lambda item: split_partition(item[0])))


# --- processes


def register(run: KraftRun, argument: list[int | RegistrationOptions]) -> dict[str, str]:
    """Register a new process of each broker."""
    responses = {}
    for item in argument:
        options = RegistrationOptions(id=item) if isinstance(item, int) else item
        broker, error = _register(run, options)
        responses[str(broker.broker_id)] = error
        if error == "NONE" and not options.same_incarnation and not options.silent:
            broker.state = ProcessState.STARTING
    return responses


def _register(run: KraftRun, options: RegistrationOptions) -> tuple[HeartbeatingBroker, str]:
    broker = run.brokers.configure(options)
    process = broker.incarnation, broker.offline, broker.applied_offset
    if not options.same_incarnation or broker.incarnation is None:
        run.brokers.start_process(broker)
    if options.lagging:
        broker.applied_offset = 0
    directories = None
    if options.directory_ids is not None:
        directories = [RESERVED.get(symbol) or run.names.directory(symbol) for symbol in options.directory_ids]
    error = run.brokers.register(broker, options.cluster_id, options.previous_epoch, directories)
    if error != "NONE" and broker.state is not ProcessState.STOPPED:  # The running process is another one.
        broker.incarnation, broker.offline, broker.applied_offset = process
    return broker, error


def start(run: KraftRun, argument: list[int | RegistrationOptions]) -> dict[str, Any]:
    """Register each broker, again while the session of its former process lasts, and unfence it."""
    responses: dict[str, Any] = {}
    for item in argument:
        options = RegistrationOptions(id=item) if isinstance(item, int) else item
        broker, error = _register(run, options)
        deadline = run.quorum.now_ns + 2 * run.quorum.timers.session_ns + 5 * SECOND
        while error == ErrorCode.DUPLICATE_BROKER_REGISTRATION.name and run.quorum.now_ns < deadline:
            run.pass_time(RETRY_NS)
            error = run.brokers.register(broker)
        responses[str(broker.broker_id)] = error
        if error == "NONE":
            broker.state = ProcessState.STARTING
            responses |= unfence(run, [broker.broker_id])
    return responses


def restart(run: KraftRun, argument: list[int]) -> dict[str, str]:
    """Register a new process when the session of the old one has ended and the controller has not fenced it yet."""
    responses = {}
    for broker_id in argument:
        broker = run.brokers.get(broker_id)
        if broker.state is not ProcessState.STOPPED:
            run.brokers.heartbeat(broker)
        session = broker_id, broker.epoch
        broker.stop(wait=False)
        run.brokers.start_process(broker)
        heartbeats, quorum = run.quorum.context.heartbeats, run.quorum
        while heartbeats.has_valid_session(*session, quorum.now_ns):
            end = heartbeats.contact_ns[session] + heartbeats.session_timeout_ns
            if end >= quorum.now_ns + TICK_NS:
                run.tick()
            else:
                quorum.now_ns = end + 1
        responses[str(broker_id)] = run.brokers.register(broker)
        broker.state = ProcessState.STARTING
    return responses


def unfence(run: KraftRun, argument: list[int]) -> dict[str, Any]:
    """The brokers ask to be unfenced from now on."""
    return {str(broker_id): _heartbeat_as(run, broker_id, ProcessState.RUNNING) for broker_id in argument}


def fence(run: KraftRun, argument: list[int]) -> dict[str, Any]:
    """The brokers ask to be fenced from now on."""
    return {str(broker_id): _heartbeat_as(run, broker_id, ProcessState.STARTING) for broker_id in argument}


def _heartbeat_as(run: KraftRun, broker_id: int, state: ProcessState) -> dict[str, Any]:
    broker = run.brokers.get(broker_id)
    broker.state = state
    return run.brokers.heartbeat(broker)


def stop_heartbeats(run: KraftRun, argument: list[int]) -> None:
    """The brokers stop their heartbeats in this order, a quarter of a session apart."""
    for broker_id in argument:
        broker = run.brokers.get(broker_id)
        if broker.state is ProcessState.STOPPED:
            continue
        run.brokers.heartbeat(broker)
        broker.stop()
        if len(argument) > 1:
            run.pass_time(run.quorum.timers.session_ns // 4)


def stop_uncleanly(run: KraftRun, argument: list[int]) -> None:
    """Kill the processes, without waiting for the end of their sessions."""
    for broker_id in argument:
        run.brokers.get(broker_id).stop(wait=False)


def begin_shutdown(run: KraftRun, argument: list[int] | ShutdownOptions) -> None:
    """The brokers ask for controlled shutdown in every heartbeat."""
    waits = argument.wait if isinstance(argument, ShutdownOptions) else True
    for broker_id in brokers_to_stop(argument):
        broker = run.brokers.get(broker_id)
        broker.responses = []
        broker.state, broker.waits_for_session = ProcessState.STOPPING, waits
        run.brokers.heartbeat(broker)


def brokers_to_stop(argument: list[int] | ShutdownOptions) -> list[int]:
    """The brokers of a shutdown."""
    return argument.brokers if isinstance(argument, ShutdownOptions) else argument


def heartbeat(run: KraftRun, argument: Heartbeat) -> dict[str, Any]:
    """Send one heartbeat."""
    return run.brokers.heartbeat_with(run.brokers.configure(RegistrationOptions(id=argument.broker)), argument)


def lag(run: KraftRun, argument: list[int]) -> None:
    """These brokers stop applying records."""
    for broker_id in argument:
        run.brokers.get(broker_id).applied_offset = run.quorum.end_offset - 1


def catch_up_metadata(run: KraftRun, argument: list[int]) -> None:
    """These brokers resume applying records."""
    for broker_id in argument:
        run.brokers.get(broker_id).applied_offset = None


# --- directories


def report_offline_directories(run: KraftRun, argument: BrokerDirectories) -> dict[str, Any]:
    """The broker reports these directories as offline in each heartbeat."""
    broker = run.brokers.get(argument.broker)
    broker.offline = [*broker.offline, *argument.directories]
    return run.brokers.heartbeat(broker)


def cordon(run: KraftRun, argument: BrokerDirectories) -> dict[str, Any]:
    """The broker reports exactly these directories as cordoned."""
    broker = run.brokers.get(argument.broker)
    broker.cordoned = argument.directories
    return run.brokers.heartbeat(broker)


def assign(run: KraftRun, argument: DirectoryAssignments) -> dict[str, Any]:
    """AssignReplicasToDirs. Assignments to one directory are together in the request."""
    broker = run.brokers.get(argument.broker)
    by_directory: dict[UUID, list[DirectoryAssignment]] = {}
    for name, symbol in argument.partitions.items():
        topic, partition = split_partition(name)
        directory = RESERVED.get(symbol) or run.names.directory(f"{broker.broker_id}.{symbol}")
        assignment = DirectoryAssignment(directory, topic_id_of(run, topic), partition)
        by_directory.setdefault(directory, []).append(assignment)
    assignments = [assignment for group in by_directory.values() for assignment in group]
    epoch = broker.epoch if argument.epoch is None else argument.epoch
    error, results = run.submit(
        "error", lambda context: assign_directories(context, broker.broker_id, epoch, assignments)
    )
    if results is None:
        return {"error": error}
    return by_partition(
        {
            f"{run.names.topic(result.assignment.topic_id)}-{result.assignment.partition}": result.error.name
            for result in results
        }
    )


def topic_id_of(run: KraftRun, name: str) -> UUID:
    """The id of a topic by name; a new id for an unknown topic."""
    topics = run.quorum.metadata.topics
    index = topics.index_by_name.get(name)
    return run.names.topic_id(name) if index is None else topics.ids[index]


# --- partition leaders


def alter_partition(run: KraftRun, argument: dict[str, IsrChange]) -> dict[str, Any]:
    """One AlterPartition request for each sender, in the order in which the senders are first named."""
    requests: dict[tuple[int, int | None], dict[str, KraftIsrProposal]] = {}
    for name, change in argument.items():
        sender, proposal = _proposal(run, name, change)
        requests.setdefault((sender, change.sender_epoch), {})[name] = proposal
    responses: dict[str, Any] = {}
    for (sender, named_epoch), proposals in requests.items():
        known_epoch = run.brokers.by_id[sender].epoch if sender in run.brokers.by_id else 0
        responses |= _alter(run, sender, known_epoch if named_epoch is None else named_epoch, proposals)
    return {name: responses.get(name) for name in argument}


def _alter(run: KraftRun, sender: int, epoch: int, proposals: dict[str, KraftIsrProposal]) -> dict[str, Any]:
    try:
        results: list[IsrResult] = run.quorum.submit(
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


def _proposal(run: KraftRun, name: str, change: IsrChange) -> tuple[int, KraftIsrProposal]:
    topic, partition = split_partition(name)
    row = run.quorum.metadata.row(topic, partition)
    stored = None if row is None else partition_record(run.quorum.metadata, row)
    leader, leader_epoch, partition_epoch, recovery = (
        (-1, 0, 0, 0)
        if stored is None
        else (stored.leader, stored.leader_epoch, stored.partition_epoch, stored.leader_recovery_state)
    )
    epochs = {broker_id: broker.epoch for broker_id, broker in run.brokers.by_id.items()} | change.broker_epochs
    return leader if change.sender is None else change.sender, KraftIsrProposal(
        topic_id=topic_id_of(run, topic),
        partition=partition,
        isr=tuple((member, epochs.get(member, -1)) for member in change.isr),
        leader_epoch=leader_epoch if change.leader_epoch is None else change.leader_epoch,
        partition_epoch=partition_epoch if change.partition_epoch is None else change.partition_epoch,
        recovery=recovery if change.leader_recovery_state is None else change.leader_recovery_state,
    )


def catch_up(run: KraftRun, argument: list[str] | Empty) -> dict[str, int]:
    """Each leader proposes its ISR with all replicas that are active. Returns the number of partitions by error."""
    metadata = run.quorum.metadata
    proposals = {}
    for name, index in sorted(metadata.topics.index_by_name.items()):
        if isinstance(argument, list) and argument and name not in argument:
            continue
        for row in sorted(metadata.topics.rows_of(index).tolist()):
            record = partition_record(metadata, row)
            joining = [id for id in record.replicas if id not in record.isr and metadata.brokers.is_active(id)]
            if record.leader >= 0 and joining:
                proposals[f"{name}-{record.partition_id}"] = IsrChange([*record.isr, *joining])
    errors = [response["error"] for response in alter_partition(run, proposals).values()]
    return {error: errors.count(error) for error in sorted(set(errors))}


def allocate_ids(run: KraftRun, argument: int) -> dict[str, Any]:
    """AllocateProducerIds of a broker."""
    epoch = run.brokers.get(argument).epoch
    error, block = run.submit("error", lambda context: allocate_producer_ids(context, argument, epoch))
    return {"error": error} if block is None else {"error": error, "start": block.start, "length": block.length}
