"""kframe instances have precedence over brokers: a standby claims early, and takes the role only from a broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kframe.core.controller import ControllerCore
from kframe.core.selectors.leader_selection import Selection
from kframe.embedded import MemoryEnsemble, MemoryStore, RecordingTransport, VirtualClock
from kframe.embedded.layout import CONTROLLER, CONTROLLER_EPOCH
from kframe.embedded.records import Create, SetData
from kframe.errors import StoreError
from kframe.model.config import ControllerConfig
from kframe.model.events import ControllerChanged, Reelect
from kframe.model.ids import NO_LEADER
from kframe.ports.store_requests import Claim, OwnsRole, ReleaseRole
from kframe.runtime.contending import TAKEOVER_INTERVAL_MS
from kframe.runtime.loop import ControllerLoop
from kframe.testing.clusters import cluster_of, healthy

BROKER, OURS, OTHER = 1, 1000, 1001


class ContendingStore(MemoryStore):
    """An in-memory store that records the controller ids of ``contend``."""

    def __init__(self, ensemble: MemoryEnsemble) -> None:
        super().__init__(ensemble.records, ensemble.states, ensemble.topics)
        self.contended: list[int] = []
        self.failure: StoreError | None = None
        self.on_contend: Callable[[], object] = lambda: None

    def contend(self, controller_id: int) -> None:
        self.contended.append(controller_id)
        self.on_contend()
        if self.failure is not None:
            raise self.failure


class Harness:
    """Two registered brokers, and a kframe instance with precedence over them."""

    def __init__(self, instances_first: bool = True) -> None:
        self.ensemble = MemoryEnsemble.from_cluster(cluster_of({"t": [healthy(1, 2)]}, (BROKER, 2)))
        self.clock = VirtualClock()
        self.store = ContendingStore(self.ensemble)
        config = ControllerConfig({"kframe.never.replicas": f"{OURS},{OTHER}"})
        self.loop = ControllerLoop(
            ControllerCore(OURS, config, Selection({})),
            self.store,
            RecordingTransport(),
            self.clock,
            instances_first=instances_first,
        )

    def elect_broker(self, broker_id: int = BROKER) -> None:
        """Take the role as a broker does, in the session of its registration."""
        records, session = self.ensemble.records, self.ensemble._operator
        data, stat = records.get(session, CONTROLLER_EPOCH)
        records.multi(
            session,
            [
                Create(CONTROLLER, str(broker_id).encode(), ephemeral=True),
                SetData(CONTROLLER_EPOCH, str(int(data) + 1).encode(), stat.version),
            ],
        )

    def elect_instance(self, controller_id: int = OTHER) -> MemoryStore:
        other = self.ensemble.connect()
        other.open(lambda _event: None)
        assert other.perform(Claim(controller_id)) is not None
        return other

    def epoch(self) -> int:
        return int(self.ensemble.records.get(self.ensemble._operator, CONTROLLER_EPOCH)[0])

    def settle(self) -> None:
        """Handle pending events and due timers."""
        self.loop.run_until_idle()
        self.clock.advance(0.0)
        self.loop.run_until_idle()


def opened(before: Callable[[Harness], object], instances_first: bool = True) -> Harness:
    harness = Harness(instances_first)
    before(harness)
    harness.loop.open()
    harness.settle()
    return harness


def test_role_is_taken_from_broker() -> None:
    harness = opened(Harness.elect_broker)
    assert harness.loop.controller.active
    assert harness.epoch() == 2


def test_broker_keeps_the_role_without_instances_first() -> None:
    harness = opened(Harness.elect_broker, instances_first=False)
    assert (harness.loop.controller.active, harness.loop.controller.active_controller) == (False, BROKER)
    assert harness.store.contended == []


@pytest.mark.parametrize("other", [OTHER, 1007], ids=["named by kframe.never.replicas", "named nowhere"])
def test_role_is_not_taken_from_another_instance(other: int) -> None:
    """Only a registered broker in its own session counts as a broker, even if no configuration lists the other id."""
    harness = opened(lambda harness: harness.elect_instance(other))
    harness.clock.advance(10 * TAKEOVER_INTERVAL_MS / 1000)
    harness.settle()
    assert (harness.loop.controller.active, harness.loop.controller.active_controller, harness.epoch()) == (
        False,
        other,
        1,
    )
    assert harness.store.contended == [OURS] * len(harness.store.contended) != []


def test_instance_elected_before_takeover_keeps_the_role() -> None:
    """3 -> 1001 -> 1000: a broker had the role, but another instance has it at the time of the attempt."""
    harness = Harness()
    harness.elect_broker()
    harness.loop.open()
    harness.loop.run_until_idle()
    harness.ensemble.drop_controller()
    other = harness.elect_instance()
    harness.settle()
    harness.clock.advance(10 * TAKEOVER_INTERVAL_MS / 1000)
    harness.settle()
    assert other.perform(OwnsRole())
    assert harness.epoch() == 2


def test_broker_that_reclaims_the_role_is_deposed_once_a_second() -> None:
    harness = opened(Harness.elect_broker)
    harness.ensemble.drop_controller()
    harness.elect_broker()
    harness.settle()
    assert (harness.loop.controller.active, harness.epoch()) == (False, 3)
    harness.clock.advance(TAKEOVER_INTERVAL_MS / 1000)
    harness.settle()
    assert (harness.loop.controller.active, harness.epoch()) == (True, 4)


def test_failed_claim_preparation_does_not_prevent_election() -> None:
    harness = Harness()
    harness.store.failure = StoreError("no connection")
    other = harness.elect_instance()
    harness.loop.open()
    harness.settle()
    assert harness.store.contended == [OURS]
    other.perform(ReleaseRole())
    harness.settle()
    assert harness.loop.controller.active


def test_store_contends_after_each_controller_event() -> None:
    harness = opened(Harness.elect_instance)
    harness.store.contended.clear()
    harness.loop.notify(ControllerChanged())
    harness.settle()
    assert harness.store.contended == [OURS]
    harness.loop.notify(Reelect())
    harness.settle()
    assert harness.store.contended == [OURS] * 2


def test_standby_contends_before_its_status_shows_the_active_controller() -> None:
    """A standby whose status is ready notices the end of the active controller's process."""
    harness, known = Harness(), list[int]()
    harness.store.on_contend = lambda: known.append(harness.loop.status().active_controller)
    harness.elect_instance()
    harness.loop.open()
    harness.settle()
    assert known == [NO_LEADER]
    assert harness.loop.status().active_controller == OTHER
