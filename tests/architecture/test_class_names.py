"""No class name of the distributions exists twice (``CONTRIBUTING.md``)."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT, definitions

PACKAGES: Final = [
    ROOT / "kframe",
    ROOT / "simulator" / "kframe_simulator",
    *(path for path in sorted((ROOT / "plugins").glob("*/kframe_*")) if path.is_dir()),
]


def class_locations(packages: list[Path]) -> dict[str, list[str]]:
    """Return file and line of the classes of each name, in modules and nested in other classes."""
    locations = defaultdict(list)
    for path in sorted(path for package in packages for path in package.rglob("*.py")):
        for name, line in definitions(path.read_text()).classes:
            locations[name].append(f"{path.name}:{line}")
    return locations


def test_class_name_is_unique() -> None:
    locations = class_locations(PACKAGES)
    assert len(locations) > 500
    assert {name: paths for name, paths in locations.items() if len(paths) > 1} == {}
