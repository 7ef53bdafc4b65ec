"""Draws the mutants of an area and runs its tests on them, in a copy of the committed tree. A session continues."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.architecture.source import ROOT
from tests.tools import group_bin
from verification.mutants.areas import Area

FOLDER: Final = ROOT / "build" / "mutants"
#: cosmic-ray's item and result, as ``cosmic-ray dump`` prints them. A mutant that did not run has no result.
Dumped: TypeAlias = tuple[dict[str, Any], dict[str, Any] | None]
#: A mutant that does not end counts as noticed. The limit is a multiple of the seconds without a mutant.
TIMEOUT_FACTOR: Final = 4


@dataclass(frozen=True, slots=True)
class Session:
    """The mutants of an area that ``seed`` draws at ``commit``. Files are kept below ``build/mutants``."""

    area: Area
    commit: str
    count: int

    @property
    def seed(self) -> str:
        """The seed of the draw."""
        return f"{self.commit} {self.area.name}"

    @property
    def folder(self) -> Path:
        """The folder of the session."""
        return FOLDER / self.commit[:12] / f"{self.area.name}-{self.count}"

    def run(self) -> list[Dumped]:
        """Run what has not run yet and return all mutants. Raises ``CalledProcessError`` if tests fail without one."""
        tree = self.folder / "tree"
        copy_tree(self.commit, tree)  # Again, since a killed run leaves a mutant.
        session, config = self.folder / "session.sqlite", self.folder / "cosmic-ray.toml"
        if not config.exists():
            seconds = _baseline(tree, self._tests())
            unfinished = self.folder / "unfinished.sqlite"
            unfinished.unlink(missing_ok=True)
            text = _configuration(self.area.package, self._tests(), TIMEOUT_FACTOR * seconds)
            (self.folder / "unfinished.toml").write_text(text, encoding="utf-8")
            _cosmic_ray(tree, "init", self.folder / "unfinished.toml", unfinished)
            script = Path(__file__).with_name("draw.py")
            _run([_bin() / "python", script, unfinished, self.seed, self.count], tree)
            unfinished.rename(session)
            (self.folder / "unfinished.toml").rename(config)
        _cosmic_ray(tree, "exec", config, session)
        return list(_dump(tree, session))

    def _tests(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "pyproject.toml",
            "-p",
            "no:cacheprovider",
            "-q",
            "-x",
            "--benchmark-disable",
            "-m",
            "not real and not extended",
            *self.area.tests,
        ]


def copy_tree(commit: str, folder: Path) -> None:
    """Copy the files of a commit and the compiled kernels of the working tree, over those of an earlier copy."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    for pattern in ("kframe/**/*.so", "plugins/*/*/**/*.so"):
        for kernel in ROOT.glob(pattern):
            shutil.copy2(kernel, folder / kernel.relative_to(ROOT))


def _bin() -> Path:
    return group_bin("mutants")


def _configuration(package: str, tests: Sequence[str], timeout_s: float) -> str:
    return "\n".join(
        (
            "[cosmic-ray]",
            f"module-path = {json.dumps(package)}",
            f"timeout = {timeout_s:.1f}",
            f"test-command = {json.dumps(shlex.join(tests))}",
            "[cosmic-ray.distributor]",
            'name = "local"',
            "",
        )
    )


def _baseline(tree: Path, tests: Sequence[str]) -> float:
    """Run the tests without a mutant, so that a failure shows a mutant. Return the seconds."""
    started = time.monotonic()
    _run(tests, tree)
    return time.monotonic() - started


def _dump(tree: Path, session: Path) -> Iterator[Dumped]:
    dumped = subprocess.run(
        [_bin() / "cosmic-ray", "dump", session], cwd=tree, check=True, capture_output=True, text=True
    ).stdout
    for line in dumped.splitlines():
        item, result = json.loads(line)
        yield item, result


def _cosmic_ray(tree: Path, *arguments: str | Path) -> None:
    _run([_bin() / "cosmic-ray", *arguments], tree)


def _run(command: Sequence[object], tree: Path) -> None:
    """Run a command in the copy, whose packages precede those that are installed."""
    packages = [tree, tree / "simulator", *sorted(path.parent for path in tree.glob("plugins/*/pyproject.toml"))]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "HYPOTHESIS_PROFILE": "brief",
    }
    subprocess.run([str(word) for word in command], cwd=tree, env=environment, check=True)
