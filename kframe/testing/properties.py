"""Profiles of property tests, which the tests of kframe and of its plugins share. Needs Hypothesis.

The variable HYPOTHESIS_PROFILE chooses one: ``steady`` and ``brief`` draw the same examples in every run, ``explore``
draws new ones, and many.
"""

from __future__ import annotations

import os

from hypothesis import settings

__all__ = ["examples", "load_profile"]


def load_profile() -> None:
    """Register the profiles and load the chosen one, by default ``steady``."""
    # A shared machine makes deadlines by wall time unreliable; a timeout ends a test that hangs.
    settings.register_profile("steady", max_examples=20, derandomize=True, deadline=None)
    settings.register_profile("brief", max_examples=12, derandomize=True, deadline=None)
    settings.register_profile("explore", max_examples=2_000, deadline=None, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def examples(share: float) -> settings:
    """The settings of a property with this share of the examples of the loaded profile."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))
