"""Profiles of property tests, which the tests of kframe and of its plugins share. Needs Hypothesis.

The variable HYPOTHESIS_PROFILE chooses one: ``steady`` and ``brief`` draw the same examples in every run, ``unshrunk``
those of ``steady``, of which it reports the first that fails, and ``explore`` draws new ones, and many.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

__all__ = ["examples", "load_profile"]


def load_profile() -> None:
    """Register the profiles and load the chosen one, by default ``steady``."""
    # On a busy machine deadlines and the health check of slow draws fail, since both go by wall time. A timeout ends a
    # test that hangs.
    untimed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("steady", untimed, max_examples=20, derandomize=True)
    settings.register_profile("brief", untimed, max_examples=12, derandomize=True)
    phases = (Phase.explicit, Phase.generate)
    first = settings(untimed, phases=phases, report_multiple_bugs=False)
    settings.register_profile("unshrunk", first, max_examples=20, derandomize=True)
    settings.register_profile("explore", untimed, max_examples=2_000, print_blob=True)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def examples(share: float) -> settings:
    """The settings of a property with this share of the examples of the loaded profile."""
    return settings(max_examples=max(1, round(share * settings().max_examples)))
