"""Options of a simulation without faults, operators or drawn actions."""

from __future__ import annotations

from typing import Final

from kframe_simulator import Options
from kframe_simulator.simulation.options import ProducerOptions, TopicOptions

QUIET: Final = Options(
    seed=1,
    brokers=(1, 2, 3, 4),
    racks=0,
    controllers=2,
    topics=(TopicOptions("t", ((1, 2, 3), (2, 3, 1)), unclean=False, min_insync=1),),
    protocol="3.9",
    strict=False,
    rebalance=False,
    session_timeout_ms=3_000.0,
    request_timeout_ms=1_500.0,
    delay_ms=(0.3, 4.0),
    faults=(),
    actions=0,
    gap_ms=100.0,
    producers=(ProducerOptions(-1, idempotent=True),),
)
