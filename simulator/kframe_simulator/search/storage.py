"""Storage of the small space as a function: one call of one controller on a value (``kframe.ports.store.Store``).

It has the needed rules of ZooKeeper: an ephemeral ``/controller``, a version on ``/controller_epoch`` that fences
writes, a version on the state, one-shot watches. ``test_storage.py`` compares it with ``MemoryStore``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kframe_simulator.search.subject import OK, STALE
from kframe_simulator.search.values import ARMED, CHANGED, ELECT, EXPIRED, FOLLOWS, NO_LEADER, ControllerSession, Stored

#: Controllers' ids, different from all broker ids.
IDS = {0: NO_LEADER, 1: 1001, 2: 1002}


class Called(NamedTuple):
    """The result of a call."""

    stored: Stored
    process: ControllerSession
    result: tuple[Any, ...]
    """The result in the form of ``Subject.step``."""
    notified: int = 0
    """CHANGED or ELECT if other controllers are notified. They watch the role."""
    wrote: bool = False
    """Whether the state was written."""


def call(
    controller: int, stored: Stored, process: ControllerSession, ask: tuple[Any, ...], fenced: bool = True
) -> Called:
    """Perform one call. With ``fenced`` False, writes are not fenced; a test checks that the search detects this."""
    if process.flags & EXPIRED:
        return Called(stored, process, ("failed", "session"))
    match ask[0]:
        case "ReadController":
            process = process._replace(flags=process.flags | ARMED)
            return Called(stored, process, ("done", ask[0], IDS[stored.owner], stored.owner == controller))
        case "claim":
            return _claim(controller, stored, process)
        case "ReadBrokers" | "Load":
            process = process._replace(flags=process.flags | FOLLOWS)
            return Called(stored, process, ("done", ask[0], stored if ask[0] == "Load" else stored.registered))
        case "ReadStates":
            return Called(stored, process, ("done", ask[0], stored))
    if not process.claim or (fenced and process.claim != stored.controller_epoch):
        return Called(stored, process, ("failed", "fenced"))
    if ask[0] == "assign":
        stored = stored._replace(assigned=ask[1], adding=ask[2], removing=ask[3])
    if ask[0] in ("Prepare", "assign"):
        return Called(stored, process, ("done", ask[0]))
    return _write(stored, process, ask)


def _claim(controller: int, stored: Stored, process: ControllerSession) -> Called:
    process = process._replace(flags=process.flags | ARMED)
    if stored.owner:
        return Called(stored, process, ("done", "claim", None))
    epoch = stored.controller_epoch + 1
    stored = stored._replace(owner=controller, controller_epoch=epoch)
    return Called(stored, process._replace(claim=epoch), ("done", "claim", epoch), notified=CHANGED)


def _write(stored: Stored, process: ControllerSession, ask: tuple[Any, ...]) -> Called:
    _, leader, leader_epoch, isr, recovery, expected, controller_epoch = ask
    if expected != stored.version:
        return Called(stored, process, ("done", "write", STALE, -1))
    version = stored.version + 1
    stored = stored._replace(
        leader=leader, leader_epoch=leader_epoch, isr=isr, recovery=recovery, state_epoch=controller_epoch,
        version=version,
    )  # fmt: skip
    return Called(stored, process, ("done", "write", OK, version), wrote=True)


def release(controller: int, stored: Stored, process: ControllerSession) -> tuple[Stored, bool]:
    """Release the role if it is ours. Returns whether that deleted ``/controller``."""
    ours = stored.owner == controller and not process.flags & EXPIRED and process.claim == stored.controller_epoch
    return (stored._replace(owner=0), True) if ours else (stored, False)


def notify(process: ControllerSession, notified: int) -> ControllerSession:
    """The process after a notification of its one-shot role watch."""
    if not process.flags & ARMED or process.flags & EXPIRED or notified not in (ELECT, CHANGED):
        return process
    return process._replace(flags=(process.flags & ~ARMED) | notified)
