"""Options of a configuration: which faults and operations can happen."""

from __future__ import annotations

from dataclasses import dataclass

from kframe_simulator.search.values import BROKERS


@dataclass(frozen=True, slots=True)
class Options:
    """What may happen in the space, and how often."""

    controllers: int = 2
    broker_faults: int = -1
    """Deaths, lost sessions and controlled shutdowns of brokers on a path; -1: any number."""
    controller_faults: int = -1
    """Crashes, lost sessions and depositions of controllers on a path."""
    record: bool = True
    """Whether a record is produced, copied and committed (I10)."""
    shutdown: bool = True
    lapses: bool = True
    """Whether a broker may lose its registration and go on."""
    fine: bool = False
    """Whether sending is a step of its own."""
    isr: tuple[int, ...] = BROKERS
    """The ISR at the root; its members have fetched all, the others have not."""
    assigned: tuple[int, ...] = BROKERS
    """The replicas at the root."""
    target: tuple[int, ...] = ()
    """What an operator may ask to reassign the partition to, once, and to give that up, once."""
    unclean: bool = False
    min_isr: int = 1
    fenced: bool = True
    """False leaves the fence of storage out: a mutant."""
