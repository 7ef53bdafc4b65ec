"""The active controller: decisions reach the log, the disk and the metadata in this order, and then the client."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kframe_kraft.batches import read_batches
from kframe_kraft.controller import NotController, PeriodicTask, TaskSchedule
from kframe_kraft.controller.tasks import AGAIN_MS, FAILED_MS
from kframe_kraft.log import MemoryLog, open_log
from kframe_kraft.replay.image import image_of

from kframe.core.kraft import controller_apis
from kframe.core.kraft.brokers import registration
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import RECORDS_MAX, ControllerResult, RequestRefused
from kframe.core.kraft.features.activation import activate
from kframe.core.kraft.random_source import JavaRandom
from kframe.errors import ErrorCode, KframeError
from kframe.model.kraft import records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion
from kframe.testing.waiting import wait_until
from verification.kraft.held_controller import BOOTSTRAP, WAIT_S, GatedLog, Node, registered


def nothing(context: KraftContext) -> ControllerResult[str]:
    return ControllerResult((), "nothing")


@pytest.mark.parametrize(
    ("level", "known", "in_transaction", "types"),
    [
        (25, False, False, "Begin FeatureLevel End"),
        (25, False, True, "Abort Begin FeatureLevel End"),
        (12, False, False, "FeatureLevel"),
        (25, True, False, ""),
        (25, True, True, "Abort"),
    ],
)
def test_activation(level: int, known: bool, in_transaction: bool, types: str) -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(1), KraftSettings(min_insync_replicas=2), JavaRandom(0))
    bootstrap = [RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=level), 0)]
    if known:
        context.apply(bootstrap[0], 0)
    written = activate(context, bootstrap, in_transaction=in_transaction).records
    names = [type(item.record).__name__.removesuffix("Record").removesuffix("Transaction") for item in written]
    assert names == types.split()


def test_activation_with_elr_writes_the_min_insync_replicas() -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(1), KraftSettings(min_insync_replicas=2), JavaRandom(0))
    elr = records.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)
    written = activate(context, [*BOOTSTRAP, RecordAndVersion(elr, 0)], in_transaction=False).records
    assert [type(item.record) for item in written[-2:]] == [records.ConfigRecord, records.EndTransactionRecord]
    assert written[-2].record == records.ConfigRecord(
        resource_type=4, resource_name="", name="min.insync.replicas", value="2"
    )


def test_activation_without_a_level_is_refused() -> None:
    context = KraftContext(ClusterMetadata(), Heartbeats(1), KraftSettings(), JavaRandom(0))
    with pytest.raises(KframeError, match=r"no metadata\.version: format the directory"):
        activate(context, [], in_transaction=False)


def test_log_replays_to_the_metadata(tmp_path: Path, nodes: Callable[..., Node]) -> None:
    node = nodes(open_log(tmp_path).log)
    node.begin()
    assert node.create("a", "b").result(WAIT_S)[0].error is ErrorCode.NONE
    node.ask(lambda context: controller_apis.delete_topics(context, ["a"]))
    node.loop.stop()
    image = image_of(open_log(tmp_path).history)
    assert image.offset == node.log.end
    assert [*image.metadata.topics.index_by_name] == [*node.context.metadata.topics.index_by_name] == ["b"]
    assert image.metadata.features == {"metadata.version": 25}
    assert sorted(image.metadata.brokers.registrations) == [0, 1, 2]


def test_response_waits_for_the_sync(nodes: Callable[..., Node]) -> None:
    node = nodes(GatedLog())
    node.begin()
    node.log.gate.clear()
    created, read = node.create("a"), node.loop.submit(nothing)
    with pytest.raises(TimeoutError):
        created.result(0.05)
    assert not read.done()
    node.log.gate.set()
    assert created.result(WAIT_S)[0].error is ErrorCode.NONE
    assert read.result(WAIT_S) == "nothing"


def test_decisions_share_a_sync(nodes: Callable[..., Node]) -> None:
    node = nodes(GatedLog())
    node.begin()
    node.log.gate.clear()
    others = [node.create(f"t{number}") for number in range(20)]
    node.await_decided()
    before = len(node.log.syncs)
    node.log.gate.set()
    for future in others:
        future.result(WAIT_S)
    assert len(node.log.syncs) - before <= 2


def test_each_batch_of_a_decision_is_sent_before_the_next(nodes: Callable[..., Node]) -> None:
    """The last batch registers a broker, which the metadata has when all batches are in the log."""
    node = nodes(GatedLog())
    node.log.gate.clear()
    first = node.log.end
    many = [RecordAndVersion(records.NoOpRecord(), 0)] * (2 * RECORDS_MAX)
    node.seen.clear()
    decided = node.loop.submit(
        lambda context: ControllerResult([*many, *registered(context, 1, node.log).parts], "registered")
    )
    node.await_decided()
    assert node.seen == [(first + RECORDS_MAX, 0), (first + 2 * RECORDS_MAX, 0), (first + 2 * RECORDS_MAX + 1, 0)]
    assert sorted(node.context.metadata.brokers.registrations) == [1]
    assert not decided.done()
    node.log.gate.set()
    assert decided.result(WAIT_S) == "registered"


class RacingLog(GatedLog):
    """A log in which ``append`` returns only when a sync that was under way has made the batch durable."""

    races = False
    node: Node

    def append(self, batch: bytes) -> int:
        end = super().append(batch)
        if self.races:
            self.gate.set()
            wait_until(lambda: self.node.leadership.high_watermark == end)
        return end

    def sync(self) -> int:
        self.waiting.release()
        assert self.gate.wait(WAIT_S)
        return self.end


def test_response_of_a_decision_that_a_running_sync_covers(nodes: Callable[..., Node]) -> None:
    log = RacingLog()
    log.node = node = nodes(log)
    node.begin()
    while log.waiting.acquire(blocking=False):
        pass
    log.gate.clear()
    node.create("a")
    assert log.waiting.acquire(timeout=WAIT_S)
    log.races = True
    assert node.create("b").result(WAIT_S)[0].error is ErrorCode.NONE


def test_refused_request_writes_nothing(nodes: Callable[..., Node]) -> None:
    node = nodes(MemoryLog())
    node.begin()
    end = node.log.end
    with pytest.raises(RequestRefused, match="BROKER_ID_NOT_REGISTERED"):
        node.ask(lambda context: registration.unregister_broker(context, 77))
    assert node.log.end == end
    assert node.loop.failure is None


def test_log_that_cannot_be_written_ends_the_role(nodes: Callable[..., Node]) -> None:
    node = nodes(GatedLog())
    node.begin()
    topics = list(node.context.metadata.topics.index_by_name)
    node.log.full = True
    with pytest.raises(NotController, match="No space left on device"):
        node.create("a").result(WAIT_S)
    assert list(node.context.metadata.topics.index_by_name) == topics
    assert node.loop.failure == "log: No space left on device"
    with pytest.raises(NotController, match="No space left on device"):
        node.ask(nothing)


def test_failed_decision_is_refused(nodes: Callable[..., Node]) -> None:
    """One that cannot be encoded, too: as long as nothing is in the log, nothing has changed."""
    node = nodes(MemoryLog())
    node.begin()
    end = node.log.end
    too_large = records.ProducerIdsRecord(broker_id=2**40, broker_epoch=1, next_producer_id=1)

    def broken(context: KraftContext) -> ControllerResult[None]:
        raise ZeroDivisionError

    def encodes_nothing(context: KraftContext) -> ControllerResult[None]:
        return ControllerResult([RecordAndVersion(too_large, 0)], None)

    for event, reason in ((broken, "ZeroDivisionError"), (encodes_nothing, "broker_id")):
        with pytest.raises(RequestRefused, match=f"UNKNOWN_SERVER_ERROR: The decision failed: .*{reason}"):
            node.ask(event)
    assert node.log.end == end
    assert node.loop.failure is None
    node.ask(nothing)


def test_decision_that_cannot_be_applied_ends_the_role(nodes: Callable[..., Node]) -> None:
    """Its records are in the log, and a later decision would be without them."""
    node = nodes(MemoryLog())
    node.begin()
    unknown = records.UnregisterBrokerRecord(broker_id=99, broker_epoch=1)
    with pytest.raises(NotController, match="a decision cannot be written and applied: "):
        node.ask(lambda context: ControllerResult([RecordAndVersion(unknown, 0)], None))
    assert node.loop.failure is not None


def test_failed_task_is_tried_again_later(nodes: Callable[..., Node]) -> None:
    ran = threading.Event()

    def broken(context: KraftContext) -> ControllerResult[bool]:
        ran.set()
        raise ZeroDivisionError

    node = nodes(MemoryLog(), (PeriodicTask("broken", 0, broken),))
    assert ran.wait(WAIT_S)
    node.begin()
    assert node.loop.failure is None


def test_stop_refuses_what_waits(nodes: Callable[..., Node]) -> None:
    node = nodes(GatedLog())
    node.begin()
    node.log.gate.clear()
    waiting = node.create("a")
    stopping = threading.Thread(target=node.loop.stop)
    stopping.start()
    with pytest.raises(NotController, match="the controller has stopped"):
        waiting.result(WAIT_S)
    node.log.gate.set()
    stopping.join(WAIT_S)
    assert not stopping.is_alive()
    with pytest.raises(NotController):
        node.ask(nothing)
    assert node.loop.failure is None


def test_timers_run_after_their_period_and_again_while_there_is_more() -> None:
    fast, slow = PeriodicTask("fast", 100, nothing), PeriodicTask("slow", 1000, nothing)  # type: ignore[arg-type]
    timers = TaskSchedule((slow, fast), 0)
    assert (timers.deadline, list(timers.due(99))) == (100, [])
    assert list(timers.due(1000)) == [fast, slow]
    timers.ran(fast, 1000, has_more=True)
    timers.failed(slow, 1000)
    assert (timers.deadline, list(timers.due(1000 + AGAIN_MS))) == (1000 + AGAIN_MS, [fast])
    timers.ran(fast, 1010, has_more=False)
    assert timers.deadline == 1110
    assert list(timers.due(1000 + FAILED_MS)) == [fast, slow]


def test_batches_of_a_decision_are_in_the_epoch(nodes: Callable[..., Node]) -> None:
    node = nodes(MemoryLog())
    node.begin()
    headers = [batch.header for batch in read_batches(node.log.read(0, 10**6))]
    assert {header.leader_epoch for header in headers} == {node.epoch}
    assert [header.is_control for header in headers][:2] == [True, False]
