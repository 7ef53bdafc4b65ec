"""Copies of a commit, in which mutants run, and the command that runs tests there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT
from verification.mutants.mutant import Mutant

#: More than any test needs. A mutant that allocates without end fails.
MEMORY_BYTES: Final = 6 << 30


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy of the files of a commit, with the compiled kernels of the working tree."""

    folder: Path

    def write(self, commit: str) -> None:
        """Write the files over those of an earlier copy, since a run that was killed leaves a mutant."""
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(self.folder, filter="data")
        for pattern in ("kframe/**/*.so", "plugins/*/*/**/*.so"):
            for kernel in ROOT.glob(pattern):
                shutil.copy2(kernel, self.folder / kernel.relative_to(ROOT))

    @contextmanager
    def mutated(self, mutant: Mutant) -> Iterator[None]:
        """Change the module of a mutant for a time."""
        source = (self.folder / mutant.file).read_text(encoding="utf-8")
        self._replace(mutant.file, mutant.source)
        try:
            yield
        finally:
            self._replace(mutant.file, source)

    def _replace(self, file: str, source: str) -> None:
        """Write a module and remove its bytecode: that of another source of the same second and size seems valid."""
        path = self.folder / file
        path.write_text(source, encoding="utf-8")
        for bytecode in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            bytecode.unlink()

    def run_tests(self, options: Sequence[object], timeout_s: float | None = None) -> int:
        """Return the exit code of pytest. See ``run``."""
        words = ["pytest", "-c", "pyproject.toml", "-p", "verification.mutants.plugin", "-p", "no:cacheprovider"]
        return self.run([*words, "-q", "--tb=no", "--benchmark-disable", *options], timeout_s)

    def run(self, words: Sequence[object], timeout_s: float | None = None) -> int:
        """Return the exit code of ``python -m`` and the words, negative after a signal.

        Raises ``TimeoutExpired`` and ends its processes.
        """
        command = [sys.executable, "-m", *map(str, words)]
        packages = [self.folder, self.folder / "simulator"]
        packages += sorted(path.parent for path in self.folder.glob("plugins/*/pyproject.toml"))
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, packages)),
            "HYPOTHESIS_PROFILE": "unshrunk",
        }
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            return process.wait(timeout_s)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
