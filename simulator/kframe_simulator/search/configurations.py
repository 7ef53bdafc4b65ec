"""The configurations of the search: purpose, options and depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kframe_simulator.search.values import BROKERS


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The faults and operations of the space. Each has a limit."""

    controllers: int = 2
    broker_faults: int = -1
    """The most crashes, expired sessions and controlled shutdowns of brokers on a path. -1: no limit."""
    controller_faults: int = -1
    """The most crashes, expired sessions and lost roles of controllers on a path."""
    record: bool = True
    """Whether a record is produced, copied and committed (I10)."""
    shutdown: bool = True
    lapses: bool = True
    """Whether a broker may lose its registration. It then continues."""
    fine: bool = False
    """Whether each send is a separate step."""
    isr: tuple[int, ...] = BROKERS
    """The ISR at the root. Only its members have caught up."""
    assigned: tuple[int, ...] = BROKERS
    """The replicas at the root."""
    target: tuple[int, ...] = ()
    """The target of an operator's reassignment, if any. It may be requested once and cancelled once."""
    unclean: bool = False
    min_isr: int = 1
    fenced: bool = True
    """False removes the fencing of writes: a mutant."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """One space. ``known`` is the number of states within ``quick`` steps of its root, which the default test
    counts."""

    why: str
    options: SearchOptions
    depth: int
    quick: int
    known: int


CONFIGURATIONS: Final[dict[str, Configuration]] = {
    "all": Configuration(
        "everything that this space knows, a fault of a broker and one of a controller",
        SearchOptions(broker_faults=1, controller_faults=1), 12, 6, 10_637,
    ),
    "brokers": Configuration(
        "one controller that never fails, two faults of brokers",
        SearchOptions(controllers=1, broker_faults=2, controller_faults=0), 12, 6, 11_210,
    ),
    "controllers": Configuration(
        "two faults of controllers: the role lost, taken and taken back between any two calls on storage",
        SearchOptions(broker_faults=1, controller_faults=2, record=False), 12, 6, 5_665,
    ),
    "sends": Configuration(
        "a controller may also stop between a call on storage and the requests that it leads to",
        SearchOptions(broker_faults=1, controller_faults=1, record=False, fine=True), 13, 7, 4_111,
    ),
    "last": Configuration(
        "broker 1 is alone in the ISR", SearchOptions(isr=(1,), broker_faults=1, controller_faults=1), 12, 5, 5_357
    ),
    "unclean": Configuration(
        "broker 1 is alone in the ISR, and unclean elections are on",
        SearchOptions(isr=(1,), unclean=True, broker_faults=1, controller_faults=1, record=False), 12, 6, 9_502,
    ),
    "three": Configuration(
        "two faults of brokers and one of a controller",
        SearchOptions(broker_faults=2, controller_faults=1, record=False), 12, 6, 17_549,
    ),
    "moves": Configuration(
        "an operator moves the partition from brokers 1 and 2 to 3 and 2, and may give that up",
        SearchOptions(assigned=(1, 2), isr=(1, 2), target=(3, 2), broker_faults=1, controller_faults=1, record=False),
        12, 6, 6_301,
    ),
    "unbounded": Configuration("any number of faults", SearchOptions(), 7, 4, 4_403),
}  # fmt: skip
