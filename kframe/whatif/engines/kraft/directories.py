"""What if log directories of a broker of a KRaft cluster failed?"""

from __future__ import annotations

from functools import partial
from uuid import UUID

from kframe.core.kraft.brokers.log_directories import handle_directories_offline
from kframe.errors import InputError, ParameterError
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.whatif.engines.kraft.controller import KraftController
from kframe.whatif.engines.requests import DirectoriesFailure
from kframe.whatif.engines.script import Script, Step
from kframe.whatif.results.outcome import Operation, Verb


class KraftDirectoryFailure(Script):
    """A broker reports log directories as failed. A broker without any directory left stops.

    Raises InputError for a directory that the broker does not list, and a metadata.version without directories.
    """

    def __init__(self, controller: KraftController, request: DirectoriesFailure) -> None:
        broker_id, failed = request.broker_id, request.directories
        listed = _check_directories(controller, request)
        step: Step = f"log directories of broker {broker_id} fail", partial(_report, controller, request)
        if not set(listed) - set(failed):
            step = f"broker {broker_id} stops without a log directory", controller.stop((broker_id,))
        reported = controller.processes.failed_directories
        reported[broker_id] = reported.get(broker_id, frozenset()) | set(failed)
        super().__init__(Operation(Verb.DIRECTORY, (broker_id,), directories=tuple(map(uuid_text, failed))), [step])


def _check_directories(controller: KraftController, request: DirectoriesFailure) -> tuple[UUID, ...]:
    """The directories that the broker lists."""
    listed = controller.registration(request.broker_id).directories
    if controller.context.level < MetadataLevel.DIRECTORIES:
        expected = f"{level_name(MetadataLevel.DIRECTORIES)} or later"
        raise InputError("metadata.version", level_name(controller.context.level), expected)
    unlisted = [uuid_text(directory) for directory in request.directories if directory not in listed]
    if unlisted or not request.directories:
        names = ", ".join(map(uuid_text, listed)) or "it lists none"
        expected = f"a log directory of broker {request.broker_id}: {names}"
        raise ParameterError("directories", unlisted[0] if unlisted else "none", expected)
    return listed


def _report(controller: KraftController, request: DirectoriesFailure) -> None:
    registration = controller.registration(request.broker_id)
    controller.commit(handle_directories_offline(controller.context, registration, request.directories))
