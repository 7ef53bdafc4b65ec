"""Verification of kframe: a deterministic cluster simulator, broker models, fuzzing, mutants and state-space search.

A simulation runs kframe's own controllers. It simulates storage, network, brokers, clients and clocks in one thread.
The invariants are checked after every event, and the invariants at rest after all faults have ended. A plan is data: it
is drawn from a seed, replayed exactly, shrunk and saved.

::

    from kframe_simulator import plan_of, play

    result = play(*plan_of(seed=7))
    assert not result.violations

Importing the package loads no module; each name below is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kframe_simulator.faults.plan import CLASSES as CLASSES
    from kframe_simulator.faults.plan import Action as Action
    from kframe_simulator.faults.plan import draw_plan as draw_plan
    from kframe_simulator.invariants import INVARIANTS as INVARIANTS
    from kframe_simulator.simulation.options import Options as Options
    from kframe_simulator.simulation.options import draw_options as draw_options
    from kframe_simulator.simulation.run import Totals as Totals
    from kframe_simulator.simulation.run import plan_of as plan_of
    from kframe_simulator.simulation.run import play as play
    from kframe_simulator.simulation.run import play_seed as play_seed
    from kframe_simulator.simulation.run import play_seeds as play_seeds
    from kframe_simulator.simulation.run import shrink as shrink
    from kframe_simulator.simulation.simulation import Result as Result
    from kframe_simulator.simulation.simulation import Simulation as Simulation
    from kframe_simulator.simulation.watch import Violation as Violation

#: The module of each public name.
_PUBLIC = {
    "CLASSES": "faults.plan",
    "INVARIANTS": "invariants",
    "Action": "faults.plan",
    "Options": "simulation.options",
    "Result": "simulation.simulation",
    "Totals": "simulation.run",
    "Violation": "simulation.watch",
    "Simulation": "simulation.simulation",
    "draw_options": "simulation.options",
    "draw_plan": "faults.plan",
    "plan_of": "simulation.run",
    "play": "simulation.run",
    "play_seed": "simulation.run",
    "play_seeds": "simulation.run",
    "shrink": "simulation.run",
}


if not TYPE_CHECKING:  # Type checkers know only the names above.

    def __getattr__(name: str) -> Any:
        """Load a public name. Raises AttributeError for any other name."""
        if name not in _PUBLIC:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
