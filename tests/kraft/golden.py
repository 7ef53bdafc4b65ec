"""The KRaft scenarios that Kafka 4.4's controller has traces of, as parameters of tests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pytest

from tests.architecture.source import ROOT

GOLDEN: Final = ROOT / "tests" / "golden-kraft"
SCENARIOS: Final = sorted((GOLDEN / "scenarios").glob("*.yaml"))
#: More than 10,000 partitions, for seconds. ``tests/kraft/test_limits.py`` checks the same limits of batches and
#: requests without a trace.
LARGE: Final = ("create-many", "fence-large")


def scenario_parameters(extended: Collection[str] = LARGE) -> list[Any]:
    """The paths of all scenarios. Those named by ``extended`` have this mark."""
    return [
        pytest.param(path, id=path.stem, marks=pytest.mark.extended if path.stem in extended else ())
        for path in SCENARIOS
    ]
