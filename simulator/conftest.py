"""The world that invariants are broken in."""

from __future__ import annotations

import pytest

from kframe_simulator import World
from kframe_simulator.testing.quiet import QUIET


@pytest.fixture
def world() -> World:
    """A quiet world at rest, with controller 1000 at work."""
    world = World(QUIET, ())
    assert world.run().violations == ()
    return world
