"""What if brokers of a KRaft cluster restarted?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final
from uuid import NAMESPACE_OID, UUID, uuid5

import numpy as np

from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest, register_broker
from kframe.core.kraft.controller_result import RequestRefused
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.directories import LOST
from kframe.model.kraft.directory_ids import is_reserved
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.whatif.engines.kraft.controller import WhatIfController
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
        self,
        controller: WhatIfController,
        ids: tuple[int, ...],
        together: bool,
        clean: bool | None,
        repair_directories: bool,
    ) -> None:
        operation = Operation(Verb.RESTART, ids, together)
        super().__init__(operation, broker_steps(operation, "restarts", "restart", self._restart))
        self._controller = controller
        self._clean = clean
        self._repair = repair_directories

    def complete(self, outcome: Outcome) -> Outcome:
        """See ``Script``."""
        controller = self._controller
        assumed = _directory_assumptions(controller.cluster, self.operation.brokers, controller.failed_directories)
        return replace(outcome, assumptions=(*outcome.assumptions, *assumed))

    def _restart(self, ids: tuple[int, ...]) -> ControllerResponse:
        controller = self._controller
        for broker_id in ids:
            was_clean = broker_id not in controller.failed if self._clean is None else self._clean
            directories = self._directories_after_restart(broker_id)
            if directories is None:
                continue
            registration = _registration_request(controller, broker_id, was_clean, directories)
            offset = controller.committer.offset
            try:
                controller.decide(partial(register_broker, controller.context, registration, offset))
            except RequestRefused as refusal:
                return refused(refusal)
            controller.failed.discard(broker_id)
            controller.clean_shutdown_epochs.pop(broker_id, None)
            controller.unfence((broker_id,))
        return accepted()

    def _directories_after_restart(self, broker_id: int) -> tuple[UUID, ...] | None:
        """The log directories that a new process of a broker registers. None if all of them have failed."""
        controller = self._controller
        listed = controller.registration(broker_id).directories
        reported = controller.failed_directories.get(broker_id, frozenset())
        online = tuple(directory for directory in listed if self._repair or directory not in reported)
        if self._repair:
            failed = _failed_directories(controller.cluster, broker_id, reported)
            controller.failed_directories.pop(broker_id, None)
            online += tuple(directory for directory in failed if directory not in online)
        return None if listed and not online else online


def _registration_request(
    controller: WhatIfController, broker_id: int, clean: bool, directories: tuple[UUID, ...]
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


def _failed_directories(metadata: ClusterMetadata, broker_id: int, reported: frozenset[UUID]) -> tuple[UUID, ...]:
    """The failed log directories of a broker: those ``reported`` in this what-if, and those of its replicas that its
    registration does not list."""
    registration = metadata.brokers.registrations[broker_id]
    used = metadata.directories.ids_of(_used_directories(metadata, broker_id))
    unlisted = {directory for directory in used if not is_reserved(directory)} - set(registration.directories)
    return tuple(sorted(reported | (unlisted if registration.directories else set())))


def _directory_assumptions(
    metadata: ClusterMetadata, brokers: Sequence[int], reported: Mapping[int, frozenset[UUID]]
) -> Iterator[str]:
    """What restarts of ``brokers`` without a repair assume, a sentence each."""
    for broker_id in brokers:
        failed = _failed_directories(metadata, broker_id, reported.get(broker_id, frozenset()))
        subject = f"log directories of broker {broker_id}"
        if failed:
            names = ", ".join(map(uuid_text, failed))
            starts = set(metadata.brokers.registrations[broker_id].directories) - set(failed)
            effect = "" if starts else ", so the broker does not start"
            yield f"{subject}: the restart leaves {names} failed{effect} (--repair-directories: it repairs them)"
        elif LOST in _used_directories(metadata, broker_id):
            yield f"{subject}: replicas in a lost directory stay offline after the restart"


def _used_directories(metadata: ClusterMetadata, broker_id: int) -> list[int]:
    """Indexes of the directories of a broker's replicas, ascending."""
    p, broker = metadata.partitions, metadata.brokers.find(broker_id)
    rows = np.flatnonzero(p.topic >= 0).astype(np.int32)
    replicas, directories = p.lists("replica", rows), p.lists("directory", rows)
    used: list[int] = np.unique(directories.values[replicas.values == broker]).tolist()
    return used
