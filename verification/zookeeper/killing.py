"""Kill or freeze a controller at one write: the cases, and the steps of each."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from kframe_zookeeper.sandbox.fixture import ZooKeeperFixture

from kframe.testing.clusters import PartitionSpec, healthy
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe.testing.waiting import PATIENCE_S, wait_until
from verification.zookeeper.actions import Action, no_action
from verification.zookeeper.commands import ControllerRun
from verification.zookeeper.proxy import MULTI, Break, BreakPoint, Link, Proxy
from verification.zookeeper.trees import Tree, changes, faults, read_tree
from verification.zookeeper.victims import Victim, build, settle

_OPERATION: Final = struct.Struct(">i?i")
CREATED, DELETED, WRITTEN = 1, 2, 5

#: Brokers 1 to 5 are registered. Partition stuck-0 has no leader when the first controller is elected.
BROKERS: Final = (1, 2, 3, 4, 5)
CLUSTER: Final = {
    "orders": [healthy(1, 2, 3), healthy(2, 3, 1)],
    "moving": [healthy(1, 2), healthy(3, 1)],
    "deleting": [healthy(2, 3), healthy(3, 2)],
    "stuck": [PartitionSpec((4, 2), isr=(4, 2), leader_epoch=3)],
}


class Interruption(Enum):
    """How the controller is separated from its request."""

    UNSENT = "killed before the request is sent on"
    UNANSWERED = "killed when the server has done it"
    ANSWERED = "killed when it has the response"
    OVERTAKEN = "frozen, and the request arrives when another is controller"


BREAK_POINTS: Final = {
    Interruption.UNSENT: BreakPoint.BEFORE_REQUEST,
    Interruption.UNANSWERED: BreakPoint.BEFORE_RESPONSE,
    Interruption.ANSWERED: BreakPoint.AFTER_RESPONSE,
    Interruption.OVERTAKEN: BreakPoint.BEFORE_REQUEST,
}


@dataclass(frozen=True, slots=True)
class Case:
    """A write of a controller, and its cause."""

    point: int
    name: str
    operation: int
    path: str
    cause: Action = no_action
    nth: int = 1
    before: Action = no_action
    """Actions before the write of the first controller is intercepted."""
    topics: Mapping[str, Sequence[PartitionSpec]] = field(default_factory=dict)
    slow: tuple[int, ...] = ()
    takeover: bool = False
    """The first controller takes the role from another controller, which ``before`` has elected."""
    repair: Action = no_action
    """Action after the next controller is active."""
    by_client: bool = False
    """The cause is a client's request, which the client repeats at the next controller."""
    fenced: bool = True
    reached: Callable[[Tree], bool] = bool

    def frame(self, root: str) -> bytes:
        """The first bytes of the operation in a request."""
        path = (root + self.path).encode()
        return _OPERATION.pack(self.operation, False, -1) + struct.pack(">i", len(path)) + path


#: A controller in a process of its own.
ControllerProcess: TypeAlias = Victim | ControllerRun


class StoppedController:
    """The first controller. It is stopped at its write."""

    def __init__(
        self,
        case: Case,
        interruption: Interruption,
        fixture: ZooKeeperFixture,
        proxy: Proxy,
        victim: ControllerProcess | None = None,
    ) -> None:
        """``victim`` must connect through ``proxy``. The default is a Victim."""
        self._interruption = interruption
        self._interrupted_links: list[Link] = []
        self._interrupted, self._delivery = threading.Event(), threading.Event()
        frame = case.frame(fixture.settings().chroot)
        self._answered = Break(BreakPoint.BEFORE_RESPONSE, case.nth, MULTI, no_action, frame)
        script = (Break(BREAK_POINTS[interruption], case.nth, MULTI, self._interrupt, frame), self._answered)
        self.victim: ControllerProcess = victim or Victim(
            FIRST_ID, fixture.settings(proxy.address), slow=case.slow, takeover=case.takeover
        )
        if case.cause is no_action:
            proxy.script(*script)
            self.victim.start()
        else:
            self.victim.start()
            assert self.victim.settle()
            proxy.script(*script)
            case.cause(fixture, self.victim.do)
        assert self._interrupted.wait(PATIENCE_S), "it does not write that"
        if interruption is not Interruption.OVERTAKEN:
            (link,) = self._interrupted_links
            assert link.client_id is not None
            fixture.end_session(link.client_id)

    def deliver(self) -> None:
        """Deliver the delayed request of the frozen controller. Wake the controller."""
        self._delivery.set()
        assert self._answered.happened.wait(PATIENCE_S)
        self.victim.resume()
        assert not self.victim.settle()

    def close(self) -> None:
        """End the first controller."""
        self._delivery.set()
        self.victim.kill()

    def _interrupt(self, link: Link) -> None:
        self._interrupted_links.append(link)
        if self._interruption is Interruption.OVERTAKEN:
            self.victim.pause()
            self._interrupted.set()
            self._delivery.wait(PATIENCE_S)
            return
        self.victim.kill()
        if self._interruption is Interruption.UNSENT:
            link.cut()
        self._interrupted.set()


def remaining_faults(case: Case, before: Tree, fixture: ZooKeeperFixture) -> list[str]:
    """The faults of the present tree."""
    after = read_tree(fixture.operator)
    problems = faults(before, after)
    return problems or ([] if case.reached(after) else ["the goal is not reached"])


def check_takeover(
    stopped: StoppedController, case: Case, interruption: Interruption, fixture: ZooKeeperFixture
) -> None:
    """Start the next controller. Check that it finds a consistent cluster and completes the interrupted work."""
    try:
        before = read_tree(fixture.operator)
        following, loop = build(SECOND_ID, fixture.connect())
        following.open(takeover=case.takeover or interruption is Interruption.OVERTAKEN)
        loop.start()
        try:
            wait_until(lambda: following.status().active)
            case.repair(fixture, no_action)
            if case.by_client:
                case.cause(fixture, lambda task: task(following))
            wait_until(
                lambda: not remaining_faults(case, before, fixture),
                lambda: str(remaining_faults(case, before, fixture)),
            )
            fixture.settle()
            assert settle(following)
            assert remaining_faults(case, before, fixture) == []
            if interruption is Interruption.OVERTAKEN:
                settled = read_tree(fixture.operator)
                stopped.deliver()
                assert changes(settled, read_tree(fixture.operator)) == []
                assert following.status().active
        finally:
            following.stop()
    finally:
        stopped.close()
