"""Stores and transports of plugins in seeded histories, each beside what kframe itself has in memory.

A difference names the seed and the step::

    from kframe.sim.trials import play_history

    assert play_history(seed=7, storage=MyStorage()) is None
"""

from kframe.sim.trials.far_ends import EmbeddedFarEnd, FarEnd
from kframe.sim.trials.sides import Difference, Storage
from kframe.sim.trials.stores import play_bare, play_history
from kframe.sim.trials.transports import play_batches

__all__ = ["Difference", "EmbeddedFarEnd", "FarEnd", "Storage", "play_bare", "play_batches", "play_history"]
