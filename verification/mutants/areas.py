"""The mutated packages, and the folders whose tests may notice a mutant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Area:
    """A package, as a path below the root of the tree."""

    name: str
    package: str


AREAS: Final = (Area("core", "kframe/core"), Area("kernels", "verification/reference"))

#: Folders with tests. Only those that start no server are measured.
TESTS: Final = ("tests", "simulator", "plugins", "benchmarks/suite")
#: Folders whose tests check files of the tree and run no code of an area.
NOT_MEASURED_TESTS: Final = ("tests/architecture", "tests/deploy", "tests/docs", "tests/packaging")
#: Folders with the modules that may use an area, so that the tests of an importer are known.
MEASURED: Final = ("kframe", "verification", "simulator/kframe_simulator", "plugins/*/kframe_*")
