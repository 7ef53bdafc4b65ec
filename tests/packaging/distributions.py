"""Builds source distributions and wheels, and installs the wheels where there is no compiler (``make dist``).

Each wheel is built from its source distribution, so that a missing file is an error here. On Linux auditwheel names the
oldest glibc that a wheel runs with. A clean virtual environment of each interpreter then installs the wheels without a
compiler, and ``tests/packaging/smoke.py`` runs in it.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from docs.generate.man import FOLDER, manual_pages
from tests import tools
from tests.architecture.source import ROOT, tree_files

#: Folders of the distributions; wheels of the first are installed with those of the others.
CONTROLLER: Final = Path()
FOLDERS: Final = (
    CONTROLLER,
    Path("simulator"),
    *(path.parent.relative_to(ROOT) for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))),
)
#: The extras of kframe's own plugins.
EXTRAS: Final = ("console", "kraft", "live", "sim", "zookeeper")
MINORS: Final = (11, 12, 13, 14)
SMOKE: Final = ROOT / "tests" / "packaging" / "smoke.py"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, check and install all distributions, and print their names."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging.distributions", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the distributions; it is replaced")
    parser.add_argument(
        "--python", type=interpreter, action="append", help="an interpreter; default: each that is installed"
    )
    options = parser.parse_args(arguments)
    pythons = options.python or interpreters()
    shutil.rmtree(options.out, ignore_errors=True)
    make(options.out, pythons, FOLDERS)
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")
    print(f"installed and run with {', '.join(map(str, pythons))}")
    return 0


def make(out: Path, pythons: Sequence[Path], folders: Sequence[Path]) -> None:
    """Write source distributions and wheels of ``folders`` to ``out``, check them and install them.

    Raises CalledProcessError if a command fails, and ``tools.ToolMissing``.
    """
    out.mkdir(parents=True)
    sources = [source_distribution(folder, out) for folder in folders]
    for python in pythons:
        build_wheels(python, sources, out)
    run([tools.group_bin("dist") / "twine", "check", "--strict", *out.iterdir()])
    for python in pythons:
        install_and_run(python, out, EXTRAS)


def build_wheels(python: Path, sources: Sequence[Path], out: Path, *options: str) -> None:
    """Build a wheel of each source distribution or folder, with options of ``pip wheel``, and move it to ``out``."""
    with tempfile.TemporaryDirectory() as temporary:
        built = Path(temporary)
        run([python, "-m", "pip", "wheel", "--quiet", "--no-deps", *options, "--wheel-dir", built, *sources])
        for wheel in built.glob("*.whl"):
            repair(wheel, out)


def interpreters() -> list[Path]:
    """Return an interpreter of each supported version that is installed: on the path, or under pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    results = []
    for minor in MINORS:
        candidates = [
            shutil.which(f"python3.{minor}"),
            *sorted(versions.glob(f"3.{minor}.*/bin/python3"), reverse=True),
        ]
        reports = [report for candidate in candidates if candidate and (report := self_report(Path(candidate)))]
        results += [executable for reported, executable in reports if reported == minor][:1]
    return results


def interpreter(name: str) -> Path:
    """The executable of an interpreter, which may be named as in a shell."""
    path = shutil.which(name)
    report = self_report(Path(path)) if path else None
    if report is None:
        raise argparse.ArgumentTypeError(f"found {name}, expected an interpreter on PATH, or its path")
    return report[1]


def self_report(python: Path) -> tuple[int, Path] | None:
    """The minor version and the executable that an interpreter reports, or None for a shim without interpreter.

    A shim of pyenv is a script: it cannot run where the path holds no shell.
    """
    command = [str(python), "-c", "import sys; print(sys.version_info.minor, sys.executable)"]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        return None
    minor, executable = completed.stdout.rstrip("\n").split(" ", 1)
    return int(minor), Path(executable)


def source_distribution(folder: Path, out: Path) -> Path:
    """Build the source distribution of a folder and return its path.

    It is built from a copy, because setuptools writes into the folder for a moment, where linters may be reading.
    """
    before = set(out.glob("*.tar.gz"))
    with tempfile.TemporaryDirectory() as temporary:
        copy_tree(folder, Path(temporary))
        add_manual_pages(folder, Path(temporary))
        run(
            [tools.group_bin("dist") / "python", "-m", "build", "--no-isolation", "--sdist", "--outdir", out, temporary]
        )
    (path,) = set(out.glob("*.tar.gz")) - before
    return path


def copy_tree(folder: Path, target: Path) -> None:
    """Copy the files of a folder, without those that git ignores. A symbolic link becomes the file it names.

    Files keep their times, which show what is compiled already.
    """
    for path in tree_files():
        if path.is_relative_to(ROOT / folder):
            copied = target / path.relative_to(ROOT / folder)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copied)


def add_manual_pages(folder: Path, target: Path) -> None:
    """Write the manual pages of a distribution, which the source tree does not hold."""
    own = FOLDER if folder == CONTROLLER else folder
    for path, text in manual_pages().items():
        if path.is_relative_to(own):
            written = target / path.relative_to(folder)
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text)


def repair(wheel: Path, out: Path) -> None:
    """Move a wheel to ``out``. On Linux, a wheel with kernels gets the manylinux tag that its symbols allow."""
    if wheel.stem.endswith("-none-any"):
        if not (out / wheel.name).exists():
            shutil.move(wheel, out)
    elif platform.system() == "Linux":
        bin_folder = tools.group_bin("repair")
        path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        run([bin_folder / "auditwheel", "repair", "--wheel-dir", out, wheel], {"PATH": path})
    else:
        shutil.move(wheel, out)


def install_and_run(python: Path, out: Path, extras: Sequence[str] = ()) -> None:
    """Install kframe with extras in a clean virtual environment without a compiler, and run the smoke test there.

    The first command installs all of kframe's distributions from ``out`` alone, so that the second one, which installs
    what they depend on, takes none of that name from an index.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "venv"
        run([python, "-m", "venv", "--without-pip", folder])
        names = {wheel.name.partition("-")[0].replace("_", "-") for wheel in out.glob("*.whl")}
        path = str(folder / "bin")
        # A compiler elsewhere than on the path would fail too.
        without_compiler = {"PATH": path, "PYTHONPATH": "", "CC": "false", "CXX": "false"}
        pip = [python, "-m", "pip", "--python", folder, "install", "--quiet"]
        run([*pip, "--no-index", "--no-deps", "--find-links", out, *sorted(names)], without_compiler)
        # pure-sasl has no wheel of its newest release; it is Python code, which pip builds without a compiler.
        requirement = f"kframe-controller[{','.join(extras)}]"
        run([*pip, "--prefer-binary", "--find-links", out, requirement, *sorted(names)], without_compiler)
        # In that folder Python finds no source tree.
        run([folder / "bin" / "python", SMOKE, *extras], without_compiler, Path(temporary))


def run(command: Sequence[object], environment: Mapping[str, str] = {}, folder: Path = ROOT) -> None:
    """Run a command. Raises CalledProcessError after printing its output if it fails."""
    completed = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment}
    )
    if completed.returncode:
        print(completed.stdout, completed.stderr, sep="\n", file=sys.stderr)
        completed.check_returncode()


if __name__ == "__main__":
    sys.exit(main())
