"""Verification of kframe: a deterministic cluster simulator, broker models and fuzzing.

A simulation runs kframe's own controllers. It simulates storage, network, brokers, clients and clocks in one thread.
The invariants are checked after every event, and the invariants at rest after all faults have ended. A plan is data: it
is drawn from a seed, replayed exactly, shrunk and saved.

::

    from kframe_simulator import plan_of, play

    result = play(*plan_of(seed=7))
    assert not result.violations

Importing the package loads no module; each name of the stub is loaded on first use.
"""

from __future__ import annotations

from kframe.lazy import load_at_access

load_at_access(__name__)
