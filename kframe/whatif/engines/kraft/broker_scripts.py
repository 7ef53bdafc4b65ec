"""What if brokers of a KRaft cluster restarted, or were fenced or unfenced?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from kframe.core.kraft.brokers import broker_events
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker
from kframe.core.kraft.controller_result import RequestRefused
from kframe.whatif.engines.kraft.controller import KraftController
from kframe.whatif.engines.kraft.failed_directories import directory_assumptions, failed_directories
from kframe.whatif.engines.kraft.responses import accepted, refused
from kframe.whatif.engines.requests import BrokersFencing, BrokersRestart, BrokersUnfencing
from kframe.whatif.engines.script import Script, Step, groups, step_name
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb

#: ``previousBrokerEpoch`` of a broker after an unclean shutdown (Kafka ``BrokerRegistrationRequest``).
_NO_PREVIOUS_EPOCH: Final = -1


class KraftFencing(Script):
    """The controller fences brokers; their processes keep running."""

    def __init__(self, controller: KraftController, request: BrokersFencing) -> None:
        steps: list[Step] = [
            (step_name(group, "is fenced", "are fenced"), partial(_fence, controller, group))
            for group in groups(request.brokers, request.together)
        ]
        super().__init__(Operation(Verb.FENCE, request.brokers, request.together), steps)


class KraftUnfencing(Script):
    """The controller unfences those of the brokers that are fenced. Raises InputError for a broker without a
    registration."""

    def __init__(self, controller: KraftController, request: BrokersUnfencing) -> None:
        for broker_id in request.brokers:
            controller.registration(broker_id)
        steps: list[Step] = [
            (step_name(group, "is unfenced", "are unfenced"), partial(_unfence, controller, group))
            for group in groups(request.brokers, request.together)
        ]
        super().__init__(Operation(Verb.UNFENCE, request.brokers, request.together), steps)


class KraftRestart(Script):
    """New processes of brokers register, and are unfenced. After an unclean stop a broker leaves the ELRs.

    A broker does not start without a log directory.
    """

    def __init__(self, controller: KraftController, request: BrokersRestart) -> None:
        steps: list[Step] = [
            (step_name(group, "restarts", "restart"), partial(self._restart, group))
            for group in groups(request.brokers, request.together)
        ]
        super().__init__(Operation(Verb.RESTART, request.brokers, request.together), steps)
        self._controller = controller
        self._request = request

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        controller = self._controller
        reported = controller.processes.failed_directories
        assumed = directory_assumptions(controller.cluster, self._request.brokers, reported)
        return replace(outcome, assumptions=(*outcome.assumptions, *assumed))

    def _restart(self, ids: tuple[int, ...]) -> ControllerResponse:
        controller, processes, clean = self._controller, self._controller.processes, self._request.clean
        for broker_id in ids:
            was_clean = broker_id not in processes.failed if clean is None else clean
            directories = self._directories_after_restart(broker_id)
            if directories is None:
                continue
            registration = _registration_request(controller, broker_id, was_clean, directories)
            offset = controller.committer.offset
            try:
                controller.decide(partial(register_broker, controller.context, registration, offset))
            except RequestRefused as refusal:
                return refused(refusal)
            processes.failed.discard(broker_id)
            processes.clean_shutdown_epochs.pop(broker_id, None)
            _unfence(controller, (broker_id,))
        return accepted()

    def _directories_after_restart(self, broker_id: int) -> tuple[UUID, ...] | None:
        """The log directories that a new process of a broker registers. None if all of them have failed."""
        controller, repair = self._controller, self._request.repair_directories
        listed = controller.registration(broker_id).directories
        reported = controller.processes.failed_directories.get(broker_id, frozenset())
        online = tuple(directory for directory in listed if repair or directory not in reported)
        if repair:
            failed = failed_directories(controller.cluster, broker_id, reported)
            controller.processes.failed_directories.pop(broker_id, None)
            online += tuple(directory for directory in failed if directory not in online)
        return None if listed and not online else online


def _fence(controller: KraftController, ids: Iterable[int]) -> None:
    for broker_id in ids:
        controller.commit(broker_events.fence_broker(controller.context, controller.registration(broker_id)))


def _unfence(controller: KraftController, ids: Iterable[int]) -> None:
    for broker_id in ids:
        registration = controller.registration(broker_id)
        if registration.fenced:
            controller.commit(broker_events.unfence_broker(controller.context, registration))


def _registration_request(
    controller: KraftController, broker_id: int, clean: bool, directories: tuple[UUID, ...]
) -> BrokerRegistrationRequest:
    """The registration of a new process of a broker. The session of the former process has expired."""
    registration = controller.registration(broker_id)
    controller.context.heartbeats.contact_ns.pop((broker_id, registration.broker_epoch), None)
    process = f"{controller.snapshot.source.name}/{broker_id}/{controller.committer.offset}"
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=controller.context.settings.cluster_id,
        incarnation_id=uuid5(NAMESPACE_OID, process),
        end_points=registration.end_points,
        features=registration.features,
        rack=registration.rack,
        directories=directories,
        previous_broker_epoch=registration.broker_epoch if clean else _NO_PREVIOUS_EPOCH,
    )
