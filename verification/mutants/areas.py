"""The mutated packages, each with the tests that must notice its mutants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Area:
    """A package and its tests, as paths below the root of the tree."""

    name: str
    package: str
    tests: tuple[str, ...]


AREAS: Final = (
    Area("core", "kframe/core", ("tests/defects", "tests/core", "tests/scenario/test_golden.py", "tests/kraft")),
    Area(
        "kernels",
        "verification/reference",
        (
            "tests/core/test_truth_table.py",
            "tests/kernels",
            "tests/wire/test_kernels.py",
            "tests/wire/test_reference_kernels.py",
        ),
    ),
)
