"""A controller and its request part at one moment of one write: the cases, and the scene."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

from kframe.testing.clusters import PartitionSpec, healthy
from kframe.testing.store_fixture import ONE, TWO
from kframe_zookeeper.testing.actions import Action, nothing
from kframe_zookeeper.testing.proxy import MULTI, Break, BreakPoint, Link, Proxy
from kframe_zookeeper.testing.trees import Tree, changes, faults, read_tree
from kframe_zookeeper.testing.victims import Task, Victim, build, settle
from kframe_zookeeper.testing.zookeeper_fixture import ZooKeeperFixture

PATIENCE_S: Final = 120.0
_OPERATION: Final = struct.Struct(">i?i")
CREATED, DELETED, WRITTEN = 1, 2, 5

#: Brokers 1 to 5 are registered; partition stuck-0 waits for a leader when the first controller takes office.
BROKERS: Final = (1, 2, 3, 4, 5)
CLUSTER: Final = {
    "orders": [healthy(1, 2, 3), healthy(2, 3, 1)],
    "moving": [healthy(1, 2), healthy(3, 1)],
    "doomed": [healthy(2, 3), healthy(3, 2)],
    "stuck": [PartitionSpec((4, 2), isr=(4, 2), leader_epoch=3)],
}


class Way(Enum):
    """How the controller and its request come to part."""

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
    """A write, and what leads to it."""

    point: int
    name: str
    operation: int
    path: str
    trouble: Action = nothing
    nth: int = 1
    before: Action = nothing
    """What the first controller finds, and is asked, before it is watched."""
    topics: Mapping[str, Sequence[PartitionSpec]] = field(default_factory=dict)
    slow: tuple[int, ...] = ()
    takeover: bool = False
    """The first controller takes the role from another one, which ``before`` has given it."""
    repair: Action = nothing
    """What happens once the next controller is at work."""
    asked: bool = False
    """The trouble is a client's, who asks the next controller again."""
    fenced: bool = True
    reached: Callable[[Tree], bool] = bool

    def frame(self, root: str) -> bytes:
        """How the operation begins in a request."""
        path = (root + self.path).encode()
        return _OPERATION.pack(self.operation, False, -1) + struct.pack(">i", len(path)) + path


class Mortal(Protocol):
    """A controller in a process of its own: ``victims.Victim``, or ``commands.ControllerRun``."""

    def stand(self) -> None:
        """Let it stand for election."""

    def settle(self) -> bool:
        """Wait until its queued events are handled. Return whether it is the active controller then."""

    def do(self, task: Task, /) -> None:
        """Have something done there."""

    def kill(self) -> None:
        """-9."""

    def freeze(self) -> None:
        """SIGSTOP."""

    def wake(self) -> None:
        """SIGCONT."""

    def close(self) -> None:
        """End it if it runs."""


class Scene:
    """The first controller, and the moment at which it and its request part."""

    def __init__(
        self, case: Case, way: Way, fixture: ZooKeeperFixture, proxy: Proxy, victim: Mortal | None = None
    ) -> None:
        """``victim`` reaches the server by ``proxy``; without, it is a Victim."""
        self._way = way
        self._parting: list[Link] = []
        self._parted, self._arrives = threading.Event(), threading.Event()
        frame = case.frame(fixture.settings().chroot)
        self._answered = Break(BreakPoint.BEFORE_ANSWER, case.nth, MULTI, nothing, frame)
        script = (Break(BREAK_POINTS[way], case.nth, MULTI, self._part, frame), self._answered)
        self.victim = victim or Victim(
            ONE, fixture.settings(proxy.address), slow=case.slow, takeover=case.takeover
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
        """Let the request of the frozen controller arrive, and wake it."""
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
    """What there is to say against the tree as it is now."""
    after = read_tree(fixture.operator)
    problems = faults(before, after)
    return problems or ([] if case.reached(after) else ["the goal is not reached"])


def until(holds: Callable[[], bool], missing: Callable[[], str] = lambda: "it does not happen") -> None:
    """Return when ``holds``; fail with what is ``missing`` if it does not within PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, missing()
        time.sleep(0.02)


def play(scene: Scene, case: Case, way: Way, fixture: ZooKeeperFixture) -> None:
    """Let the next controller come, and see that it finds a whole cluster and ends what was begun."""
    try:
        before = read_tree(fixture.operator)
        following, loop = build(TWO, fixture.connect())
        following.open(takeover=case.takeover or way is Way.OVERTAKEN)
        loop.start()
        try:
            until(lambda: following.status().active)
            case.repair(fixture, nothing)
            if case.asked:
                case.trouble(fixture, lambda task: task(following))
            until(lambda: not wrong(case, before, fixture), lambda: str(wrong(case, before, fixture)))
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
