"""What if brokers of a KRaft cluster restarted?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker
from kframe.core.kraft.controller_result import RequestRefused
from kframe.whatif.engines.kraft.engine import KraftEngine
from kframe.whatif.engines.kraft.failed_directories import directory_assumptions, failed_directories
from kframe.whatif.engines.kraft.responses import accepted, refused
from kframe.whatif.engines.script import Script, broker_steps
from kframe.whatif.results.outcome import ControllerResponse, Operation, Outcome, Verb

#: ``previousBrokerEpoch`` of a broker after an unclean shutdown (Kafka ``BrokerRegistrationRequest``).
_NO_PREVIOUS_EPOCH: Final = -1


class KraftRestart(Script):
    """New processes of brokers register, and are unfenced. After an unclean stop a broker leaves the ELRs.

    A broker does not start without a log directory.
    """

    def __init__(
        self, engine: KraftEngine, ids: tuple[int, ...], together: bool, clean: bool | None, repair_directories: bool
    ) -> None:
        operation = Operation(Verb.RESTART, ids, together)
        super().__init__(operation, broker_steps(operation, "restarts", "restart", self._restart))
        self._engine = engine
        self._clean = clean
        self._repair = repair_directories

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        engine = self._engine
        assumed = directory_assumptions(engine.cluster, self.operation.brokers, engine.failed_directories)
        return replace(outcome, assumptions=(*outcome.assumptions, *assumed))

    def _restart(self, ids: tuple[int, ...]) -> ControllerResponse:
        engine = self._engine
        for broker_id in ids:
            was_clean = broker_id not in engine.failed if self._clean is None else self._clean
            directories = self._directories_after_restart(broker_id)
            if directories is None:
                continue
            registration = _registration_request(engine, broker_id, was_clean, directories)
            offset = engine.committer.offset
            try:
                engine.decide(partial(register_broker, engine.context, registration, offset))
            except RequestRefused as refusal:
                return refused(refusal)
            engine.failed.discard(broker_id)
            engine.clean_shutdown_epochs.pop(broker_id, None)
            engine.unfence((broker_id,))
        return accepted()

    def _directories_after_restart(self, broker_id: int) -> tuple[UUID, ...] | None:
        """The log directories that a new process of a broker registers. None if all of them have failed."""
        engine = self._engine
        listed = engine.registration(broker_id).directories
        reported = engine.failed_directories.get(broker_id, frozenset())
        online = tuple(directory for directory in listed if self._repair or directory not in reported)
        if self._repair:
            failed = failed_directories(engine.cluster, broker_id, reported)
            engine.failed_directories.pop(broker_id, None)
            online += tuple(directory for directory in failed if directory not in online)
        return None if listed and not online else online


def _registration_request(
    engine: KraftEngine, broker_id: int, clean: bool, directories: tuple[UUID, ...]
) -> BrokerRegistrationRequest:
    """The registration of a new process of a broker. The session of the former process has expired."""
    registration = engine.registration(broker_id)
    engine.context.heartbeats.contact_ns.pop((broker_id, registration.broker_epoch), None)
    process = f"{engine.snapshot.source.name}/{broker_id}/{engine.committer.offset}"
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=engine.context.settings.cluster_id,
        incarnation_id=uuid5(NAMESPACE_OID, process),
        end_points=registration.end_points,
        features=registration.features,
        rack=registration.rack,
        directories=directories,
        previous_broker_epoch=registration.broker_epoch if clean else _NO_PREVIOUS_EPOCH,
    )
