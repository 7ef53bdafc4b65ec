"""Options of a configuration: which faults and operations can happen."""

from __future__ import annotations

from dataclasses import dataclass

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
