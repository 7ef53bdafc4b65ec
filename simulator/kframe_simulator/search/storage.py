"""Storage of the small world as a function: one call of one controller on a value (``kframe.model.ports.Store``).

ZooKeeper's rules as far as they matter here: an ephemeral ``/controller``, a version on ``/controller_epoch`` that
fences every write, a version on the state, one-shot watches. ``test_storage.py`` holds it to ``MemoryStore``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kframe_simulator.search.subject import OK, STALE
from kframe_simulator.search.values import ARMED, CHANGED, ELECT, EXPIRED, FOLLOWS, NOBODY, Seat, Stored

#: Controllers' ids, which are no brokers'.
IDS = {0: NOBODY, 1: 1001, 2: 1002}


class Called(NamedTuple):
    """What a call comes to."""

    stored: Stored
    seat: Seat
    answer: tuple[Any, ...]
    """As ``Subject.step`` takes it."""
    told: int = 0
    """CHANGED or ELECT where the other controllers that watch the role are notified."""
    wrote: bool = False
    """Whether the state was written."""


def call(own: int, stored: Stored, seat: Seat, ask: tuple[Any, ...], fenced: bool = True) -> Called:
    """Perform one call. ``fenced`` False leaves the fence out, to see that the search finds it missing."""
    if seat.flags & EXPIRED:
        return Called(stored, seat, ("failed", "session"))
    match ask[0]:
        case "ReadController":
            seat = seat._replace(flags=seat.flags | ARMED)
            return Called(stored, seat, ("done", ask[0], IDS[stored.owner], stored.owner == own))
        case "claim":
            return _claim(own, stored, seat)
        case "ReadBrokers" | "Load":
            seat = seat._replace(flags=seat.flags | FOLLOWS)
            return Called(stored, seat, ("done", ask[0], stored if ask[0] == "Load" else stored.registered))
        case "ReadStates":
            return Called(stored, seat, ("done", ask[0], stored))
    if not seat.claim or (fenced and seat.claim != stored.controller_epoch):
        return Called(stored, seat, ("failed", "fenced"))
    if ask[0] == "assign":
        stored = stored._replace(assigned=ask[1], adding=ask[2], removing=ask[3])
    if ask[0] in ("Prepare", "assign"):
        return Called(stored, seat, ("done", ask[0]))
    return _write(stored, seat, ask)


def _claim(own: int, stored: Stored, seat: Seat) -> Called:
    seat = seat._replace(flags=seat.flags | ARMED)
    if stored.owner:
        return Called(stored, seat, ("done", "claim", None))
    epoch = stored.controller_epoch + 1
    stored = stored._replace(owner=own, controller_epoch=epoch)
    return Called(stored, seat._replace(claim=epoch), ("done", "claim", epoch), told=CHANGED)


def _write(stored: Stored, seat: Seat, ask: tuple[Any, ...]) -> Called:
    _, leader, leader_epoch, isr, recovery, expected, controller_epoch = ask
    if expected != stored.version:
        return Called(stored, seat, ("done", "write", STALE, -1))
    version = stored.version + 1
    stored = stored._replace(
        leader=leader, leader_epoch=leader_epoch, isr=isr, recovery=recovery, state_epoch=controller_epoch,
        version=version,
    )  # fmt: skip
    return Called(stored, seat, ("done", "write", OK, version), wrote=True)


def release(own: int, stored: Stored, seat: Seat) -> tuple[Stored, bool]:
    """Give the role up, as far as it is ours; whether that deleted ``/controller``."""
    ours = stored.owner == own and not seat.flags & EXPIRED and seat.claim == stored.controller_epoch
    return (stored._replace(owner=0), True) if ours else (stored, False)


def notify(seat: Seat, told: int) -> Seat:
    """A seat that watches the role hears of it, once."""
    if not seat.flags & ARMED or seat.flags & EXPIRED or told not in (ELECT, CHANGED):
        return seat
    return seat._replace(flags=(seat.flags & ~ARMED) | told)
