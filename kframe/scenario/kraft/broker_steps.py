"""The steps of broker processes: registrations, heartbeats, shutdowns and states of directories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe.errors import ErrorCode
from kframe.scenario.kraft.arguments import BrokerDirectories, Heartbeat, RegistrationOptions, ShutdownOptions
from kframe.scenario.kraft.brokers import HeartbeatingBroker, ProcessState
from kframe.scenario.kraft.names import RESERVED
from kframe.scenario.kraft.playing import KraftRun
from kframe.scenario.kraft.quorum import SECOND

#: Between two attempts of a process to register while the session of its predecessor lasts.
RETRY_NS = SECOND // 10


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
        deadline = run.now_ns + 2 * run.session_ns + 5 * SECOND
        while error == ErrorCode.DUPLICATE_BROKER_REGISTRATION.name and run.now_ns < deadline:
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
        broker.stop(wait=False)
        run.brokers.start_process(broker)
        responses[str(broker_id)] = run.register_at_expiry(broker)
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
            run.pass_time(run.session_ns // 4)


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
        run.brokers.get(broker_id).applied_offset = run.brokers.end_offset - 1


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


#: The function of each step of broker processes. It gets the argument in its type.
PROCESS_ACTIONS: Final[dict[str, Callable[[KraftRun, Any], Any]]] = {
    "register": register,
    "start": start,
    "restart": restart,
    "unfence": unfence,
    "heartbeat_resume": unfence,
    "heartbeat_stop": stop_heartbeats,
    "unclean_stop": stop_uncleanly,
    "fence": fence,
    "controlled_shutdown": begin_shutdown,
    "clean_stop": begin_shutdown,
    "heartbeat": heartbeat,
    "metadata_lag": lag,
    "metadata_catch_up": catch_up_metadata,
    "offline_directory": report_offline_directories,
    "cordon": cordon,
}
