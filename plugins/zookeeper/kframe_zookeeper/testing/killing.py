"""Kill or freeze a controller at one write: the cases, and the steps of each."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from kframe.testing.clusters import PartitionSpec, healthy
from kframe.testing.store_fixture import FIRST_ID, SECOND_ID
from kframe_zookeeper.testing.actions import Action, nothing
from kframe_zookeeper.testing.process import PATIENCE_S, wait_until
from kframe_zookeeper.testing.proxy import MULTI, Break, BreakPoint, Link, Proxy
from kframe_zookeeper.testing.trees import Tree, changes, faults, read_tree
from kframe_zookeeper.testing.victims import Task, Victim, build, settle
from kframe_zookeeper.testing.zookeeper_fixture import ZooKeeperFixture

_OPERATION: Final = struct.Struct(">i?i")
CREATED, DELETED, WRITTEN = 1, 2, 5

#: Brokers 1 to 5 are registered. Partition stuck-0 has no leader when the first controller is elected.
BROKERS: Final = (1, 2, 3, 4, 5)
CLUSTER: Final = {
    "orders": [healthy(1, 2, 3), healthy(2, 3, 1)],
    "moving": [healthy(1, 2), healthy(3, 1)],
    "doomed": [healthy(2, 3), healthy(3, 2)],
    "stuck": [PartitionSpec((4, 2), isr=(4, 2), leader_epoch=3)],
}


class Way(Enum):
    """How the controller is separated from its request."""

    UNSENT = "killed before the request is sent on"
    UNANSWERED = "killed when the server has done it"
    ANSWERED = "killed when it has the answer"
    OVERTAKEN = "frozen, and the request arrives when another is controller"


BREAK_POINTS: Final = {
    Way.UNSENT: BreakPoint.BEFORE_REQUEST,
    Way.UNANSWERED: BreakPoint.BEFORE_ANSWER,
    Way.ANSWERED: BreakPoint.AFTER_ANSWER,
    Way.OVERTAKEN: BreakPoint.BEFORE_REQUEST,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A write of a controller, and its cause."""

    point: int
    name: str
    operation: int
    path: str
    trouble: Action = nothing
    nth: int = 1
    before: Action = nothing
    """Actions before the write of the first controller is intercepted."""
    topics: Mapping[str, Sequence[PartitionSpec]] = field(default_factory=dict)
    slow: tuple[int, ...] = ()
    takeover: bool = False
    """The first controller takes the role from another controller, which ``before`` has elected."""
    repair: Action = nothing
    """Action after the next controller is active."""
    asked: bool = False
    """The cause is a client's request, which the client repeats at the next controller."""
    fenced: bool = True
    reached: Callable[[Tree], bool] = bool

    def frame(self, root: str) -> bytes:
        """The first bytes of the operation in a request."""
        path = (root + self.path).encode()
        return _OPERATION.pack(self.operation, False, -1) + struct.pack(">i", len(path)) + path


class Mortal(Protocol):
    """A controller in a process of its own: ``victims.Victim`` or ``commands.ControllerRun``."""

    def stand(self) -> None:
        """Let it contend for the role."""

    def settle(self) -> bool:
        """Wait until its queued events are handled. Return whether it is the active controller then."""

    def do(self, task: Task, /) -> None:
        """Run a task in the process."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def freeze(self) -> None:
        """Send SIGSTOP."""

    def wake(self) -> None:
        """Send SIGCONT."""

    def close(self) -> None:
        """End the process if it runs."""


class StoppedController:
    """The first controller. It is stopped at its write."""

    def __init__(
        self, case: Case, way: Way, fixture: ZooKeeperFixture, proxy: Proxy, victim: Mortal | None = None
    ) -> None:
        """``victim`` must connect through ``proxy``. The default is a Victim."""
        self._way = way
        self._parting: list[Link] = []
        self._parted, self._arrives = threading.Event(), threading.Event()
        frame = case.frame(fixture.settings().chroot)
        self._answered = Break(BreakPoint.BEFORE_ANSWER, case.nth, MULTI, nothing, frame)
        script = (Break(BREAK_POINTS[way], case.nth, MULTI, self._part, frame), self._answered)
        self.victim = victim or Victim(
            FIRST_ID, fixture.settings(proxy.address), slow=case.slow, takeover=case.takeover
        )  # fmt: skip
        if case.trouble is nothing:
            proxy.script(*script)
            self.victim.stand()
        else:
            self.victim.stand()
            assert self.victim.settle()
            proxy.script(*script)
            case.trouble(fixture, self.victim.do)
        assert self._parted.wait(PATIENCE_S), "it does not write that"
        if way is not Way.OVERTAKEN:
            (link,) = self._parting
            assert link.client_id is not None
            fixture.end_session(link.client_id)

    def deliver(self) -> None:
        """Deliver the delayed request of the frozen controller. Wake the controller."""
        self._arrives.set()
        assert self._answered.happened.wait(PATIENCE_S)
        self.victim.wake()
        assert not self.victim.settle()

    def close(self) -> None:
        """End the first controller."""
        self._arrives.set()
        self.victim.close()

    def _part(self, link: Link) -> None:
        self._parting.append(link)
        if self._way is Way.OVERTAKEN:
            self.victim.freeze()
            self._parted.set()
            self._arrives.wait(PATIENCE_S)
            return
        self.victim.kill()
        if self._way is Way.UNSENT:
            link.cut()
        self._parted.set()


def wrong(case: Case, before: Tree, fixture: ZooKeeperFixture) -> list[str]:
    """The faults of the present tree."""
    after = read_tree(fixture.operator)
    problems = faults(before, after)
    return problems or ([] if case.reached(after) else ["the goal is not reached"])


def play(scene: StoppedController, case: Case, way: Way, fixture: ZooKeeperFixture) -> None:
    """Start the next controller. Check that it finds a consistent cluster and completes the interrupted work."""
    try:
        before = read_tree(fixture.operator)
        following, loop = build(SECOND_ID, fixture.connect())
        following.open(takeover=case.takeover or way is Way.OVERTAKEN)
        loop.start()
        try:
            wait_until(lambda: following.status().active)
            case.repair(fixture, nothing)
            if case.asked:
                case.trouble(fixture, lambda task: task(following))
            wait_until(lambda: not wrong(case, before, fixture), lambda: str(wrong(case, before, fixture)))
            fixture.settle()
            assert settle(following)
            assert wrong(case, before, fixture) == []
            if way is Way.OVERTAKEN:
                settled = read_tree(fixture.operator)
                scene.deliver()
                assert changes(settled, read_tree(fixture.operator)) == []
                assert following.status().active
        finally:
            following.stop()
    finally:
        scene.close()
