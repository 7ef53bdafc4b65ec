"""A whole cluster in one thread, from one seed: ensemble, network, controllers, brokers, operators, and all faults.

The controllers are kframe's own, with nothing replaced; what is simulated is the world about them. After every event
the world is held to the invariants (``kframe.sim.invariants``), and once all faults have ended, to those of rest. A
plan (``kframe.sim.plan``) is data: it is drawn from a seed, played again exactly, shortened and kept.

::

    from kframe.sim import play, plan_of

    result = play(*plan_of(seed=7))
    assert not result.violations
"""

from kframe.sim.invariants import INVARIANTS
from kframe.sim.options import Options, draw_options
from kframe.sim.plan import CLASSES, Action, draw_plan
from kframe.sim.run import Tally, plan_of, play, play_seed, play_seeds, shrink
from kframe.sim.watch import Violation
from kframe.sim.world import Result, World

__all__ = [
    "CLASSES",
    "INVARIANTS",
    "Action",
    "Options",
    "Result",
    "Tally",
    "Violation",
    "World",
    "draw_options",
    "draw_plan",
    "plan_of",
    "play",
    "play_seed",
    "play_seeds",
    "shrink",
]
