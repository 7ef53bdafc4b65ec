"""What an observer and a client of a served controller see, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kframe_kraft.live import QuorumObserver
from kframe_kraft.server.serving import ServedController

from kframe.core.kraft.controller_result import ControllerResult
from kframe.model.kraft import records
from kframe.model.kraft.record_versions import RecordAndVersion
from verification.kraft.scripted_quorum import connect
from verification.kraft.served_controller import address

WAIT_S: Final = 20


def observer(*controllers: ServedController) -> QuorumObserver:
    """An observer that knows these controllers."""
    return QuorumObserver([address(controller) for controller in controllers], connect)


def caught_up(follower: QuorumObserver, controller: ServedController) -> None:
    """Poll until the observer has the committed end of the log."""
    assert controller.node is not None
    while follower.poll() < controller.node.log.end or follower.log.end < controller.node.log.end:
        pass


def _config(value: str) -> Callable[[Any], ControllerResult[None]]:
    record = records.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value=value)
    return lambda context: ControllerResult([RecordAndVersion(record, 0)], None)


def write(controller: ServedController, value: str) -> None:
    """Commit a value of ``min.insync.replicas`` for all brokers."""
    assert controller.node is not None
    assert controller.node.loop is not None
    controller.node.loop.submit(_config(value)).result(WAIT_S)
