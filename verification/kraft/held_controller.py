"""An active controller on a log, without brokers, whose steps a test can hold."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from kframe_kraft.batches import BatchPosition, encode_control_batch
from kframe_kraft.controller import Decider, DecisionLoop, PeriodicTask
from kframe_kraft.errors import LogWriteError
from kframe_kraft.log import MemoryLog
from kframe_kraft.quorum import ReplicaKey, SoleVoter, Voters

from kframe.core.kraft import controller_apis
from kframe.core.kraft.brokers import broker_events, registration
from kframe.core.kraft.brokers.broker_events import BrokerHeartbeat, BrokerHeartbeatReply
from kframe.core.kraft.brokers.heartbeats import Heartbeats
from kframe.core.kraft.brokers.registration import BrokerRegistrationRequest
from kframe.core.kraft.context import KraftContext, KraftSettings
from kframe.core.kraft.controller_result import ControllerResult
from kframe.core.kraft.features.activation import activate
from kframe.core.kraft.random_source import JavaRandom
from kframe.core.kraft.topics.topic_requests import CreatableTopic
from kframe.model.kraft import control, records
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.record_versions import RecordAndVersion

WAIT_S = 20
SECOND_NS = 10**9
LEVEL = records.FeatureLevelRecord(name="metadata.version", feature_level=25)
BOOTSTRAP = [RecordAndVersion(LEVEL, 0)]
STEADY = BrokerHeartbeatReply(is_caught_up=True, is_fenced=False, in_controlled_shutdown=False, should_shut_down=False)
VOTERS = Voters((control.Voter(voter_id=9, voter_directory_id=UUID(int=9)),))


class GatedLog(MemoryLog):
    """A log whose syncs wait, and whose appends fail on request."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.syncs: list[int] = []
        self.waiting = threading.Semaphore(0)
        self.full = False

    def append(self, batch: bytes) -> int:
        """See ``MemoryLog.append``."""
        if self.full:
            raise LogWriteError("log: No space left on device")
        return super().append(batch)

    def sync(self) -> int:
        """Wait for the gate, then sync."""
        end = self.end
        self.waiting.release()
        assert self.gate.wait(WAIT_S)
        self.syncs.append(end)
        return end


class Node:
    """An active controller on a log, without brokers."""

    def __init__(self, log: Any, timers: tuple[PeriodicTask, ...] = ()) -> None:
        self.log = log
        self.now_ns = 0
        quorum = SoleVoter(ReplicaKey(9, UUID(int=9)), VOTERS, None, log.last_epoch)
        self.epoch = quorum.stand().leader_epoch
        content = quorum.lead(log.end, log_has_voters=False)
        log.append(encode_control_batch(content, BatchPosition(log.end, self.epoch, 0)))
        assert quorum.leadership is not None
        self.leadership = quorum.leadership
        self.context = KraftContext(
            ClusterMetadata(), Heartbeats(SECOND_NS), KraftSettings(cluster_id="c"), JavaRandom(0)
        )
        self.progress = threading.Event()
        #: The end of the log, and the brokers that were registered, at each progress.
        self.seen: list[tuple[int, int]] = []
        self.loop = DecisionLoop(
            Decider(self.context, log, self.epoch), log, quorum.leadership, self.on_progress, lambda: self.now_ns
        )
        self.loop.start(timers)

    def on_progress(self) -> None:
        """Note how far the log and the metadata are."""
        self.seen.append((self.log.end, len(self.context.metadata.brokers.registrations)))
        self.progress.set()

    def ask(self, event: Callable[[KraftContext], ControllerResult[Any]]) -> Any:
        """The response to an event."""
        return self.loop.submit(event).result(WAIT_S)

    def begin(self) -> None:
        """Activate the controller, and register three brokers, which are unfenced."""
        self.ask(lambda context: activate(context, BOOTSTRAP, in_transaction=False))
        for broker_id in range(3):
            self.ask(partial(registered, broker_id=broker_id, log=self.log))
            assert not self.heartbeat(broker_id).is_fenced

    def await_decided(self) -> None:
        """Return when the events that were submitted before are decided; their records may wait for a sync."""
        decided = threading.Event()

        def last(context: KraftContext) -> ControllerResult[None]:
            decided.set()
            return ControllerResult((), None)

        self.loop.submit(last)
        assert decided.wait(WAIT_S)

    def epoch_of(self, broker_id: int) -> int:
        """The broker epoch of a registration."""
        return self.context.metadata.brokers.registrations[broker_id].broker_epoch

    def heartbeat(self, broker_id: int) -> BrokerHeartbeatReply:
        """The reply to a steady heartbeat."""
        return self.submit_heartbeat(self.steady(broker_id)).result(WAIT_S)

    def submit_heartbeat(self, heartbeat: BrokerHeartbeat) -> Future[BrokerHeartbeatReply]:
        """Have a heartbeat decided as an event."""
        return self.loop.submit(lambda context: broker_events.handle_heartbeat(context, heartbeat))

    def steady(self, broker_id: int) -> BrokerHeartbeat:
        """A heartbeat that changes nothing of an unfenced broker."""
        return BrokerHeartbeat(broker_id, self.epoch_of(broker_id), self.log.end)

    def create(self, *names: str) -> Future[Any]:
        """Create topics of two partitions."""
        topics = [CreatableTopic(name, 2, 3) for name in names]
        return self.loop.submit(
            lambda context: controller_apis.create_topics(context, topics, lambda name: uuid5(NAMESPACE_DNS, name))
        )


def registered(context: KraftContext, broker_id: int, log: Any) -> ControllerResult[int]:
    """The registration of a broker."""
    features = (records.BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=33),)
    request = BrokerRegistrationRequest(
        broker_id, "c", UUID(int=70 + broker_id), features=features, directories=(UUID(int=900 + broker_id),)
    )
    return registration.register_broker(context, request, log.end)
