"""Fixtures: a simulation at rest."""

from __future__ import annotations

import pytest

from kframe_simulator import Simulation
from verification.simulator.at_rest import QUIET


@pytest.fixture
def simulation() -> Simulation:
    """A simulation without faults at rest, with active controller 1000."""
    simulation = Simulation(QUIET, ())
    assert simulation.run().violations == ()
    return simulation
