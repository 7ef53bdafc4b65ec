"""What if log directories of a broker of a KRaft cluster failed?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from uuid import UUID

from kframe.core.kraft.brokers.log_directories import handle_directories_offline
from kframe.errors import InputError, ParameterError
from kframe.model.kafka_uuids import uuid_text
from kframe.model.kraft.ids import MetadataLevel
from kframe.model.kraft.levels import level_name
from kframe.whatif.engines.kraft.controller import WhatIfController
from kframe.whatif.engines.script import Script, Step
from kframe.whatif.results.outcome import Operation, Verb


def directory_failure(controller: WhatIfController, broker_id: int, failed: Sequence[UUID]) -> Script:
    """A broker reports log directories as failed. A broker without any directory left stops.

    Raises InputError for a directory that the broker does not list, and a metadata.version without directories.
    """
    listed = controller.registration(broker_id).directories
    if controller.context.level < MetadataLevel.DIRECTORIES:
        expected = f"{level_name(MetadataLevel.DIRECTORIES)} or later"
        raise InputError("metadata.version", level_name(controller.context.level), expected)
    unlisted = [uuid_text(directory) for directory in failed if directory not in listed]
    if unlisted or not failed:
        names = ", ".join(map(uuid_text, listed)) or "it lists none"
        expected = f"a log directory of broker {broker_id}: {names}"
        raise ParameterError("directories", unlisted[0] if unlisted else "none", expected)
    step: Step = f"log directories of broker {broker_id} fail", partial(_report, controller, broker_id, failed)
    if not set(listed) - set(failed):
        step = f"broker {broker_id} stops without a log directory", partial(controller.stop, (broker_id,))
    reported = controller.failed_directories
    reported[broker_id] = reported.get(broker_id, frozenset()) | set(failed)
    return Script(Operation(Verb.DIRECTORY, (broker_id,), directories=tuple(map(uuid_text, failed))), [step])


def _report(controller: WhatIfController, broker_id: int, failed: Sequence[UUID]) -> None:
    controller.commit(handle_directories_offline(controller.context, controller.registration(broker_id), failed))
