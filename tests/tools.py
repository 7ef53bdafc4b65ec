"""Installs tools that few tests need into ``build/tools``: linters, and tools that build distributions.

They are large, so ``make setup`` does not install them. Python tools are the dependency groups of ``pyproject.toml``,
with the versions and hashes in ``requirements/``, which ``tests.packaging.lock`` writes. Each function raises
``ToolMissing`` if a tool is neither installed nor to be had from its registry.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT

TOOLS: Final = ROOT / "build" / "tools"
REQUIREMENTS: Final = ROOT / "requirements"
#: Seconds for an installation.
INSTALLATION_S: Final = 600


class ToolMissing(Exception):
    """A tool is not installed and cannot be installed here. The message has the reason."""


def group_bin(group: str) -> Path:
    """Return the ``bin`` folder of a virtual environment with the locked versions of a dependency group."""
    requirements = REQUIREMENTS / f"{group}.txt"
    folder = TOOLS / group
    stamp = folder / f".{hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]}"
    with _lock(group):
        if not stamp.exists():
            shutil.rmtree(folder, ignore_errors=True)
            _install([sys.executable, "-m", "venv", "--without-pip", str(folder)])
            pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
            # A lock has all dependencies.
            options = ["--quiet", "--no-compile", "--no-deps", "--require-hashes"]
            _install([*pip, "install", *options, "--requirement", str(requirements)])
            stamp.touch()
    return folder / "bin"


def group_modules(group: str) -> Path:
    """Return the folder of the modules that a dependency group installs, for ``sys.path`` of this Python."""
    (folder,) = group_bin(group).parent.glob("lib/python*/site-packages")
    return folder


def npm_file(package: str, version: str, member: str, sha256: str) -> Path:
    """Return the path of a file of an npm package. Its content must have this hash."""
    path = TOOLS / f"{package}-{version}" / Path(member).name
    with _lock(package):
        if not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                _install([_on_path("npm"), "pack", "--silent", f"{package}@{version}"], Path(folder))
                (archive,) = Path(folder).glob("*.tgz")
                with tarfile.open(archive) as members:
                    content = members.extractfile(f"package/{member}")
                    assert content is not None, member
                    path.parent.mkdir(exist_ok=True)
                    path.write_bytes(content.read())
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        path.unlink()
        raise ToolMissing(f"{member} of {package} {version}: found the hash {digest}, expected {sha256}")
    return path


def promtool() -> Path:
    """Return the path of promtool: the installed one, or that of Debian's package ``prometheus``."""
    return _debian("promtool", "prometheus")


def mandoc() -> Path:
    """Return the path of mandoc, which checks manual pages: the installed one, or that of Debian's package."""
    return _debian("mandoc", "mandoc")


def headless_browser() -> Path:
    """Return the path of Chromium without windows. Root installs Debian's package, which depends on many others."""
    name = "chromium-headless-shell"
    with _lock(name):
        if shutil.which(name) is None:
            if os.geteuid() != 0:
                raise ToolMissing(f"{name} is not installed, and only root can install it")
            apt = _on_path("apt-get")
            _install([apt, "--quiet", "update"])
            _install([apt, "--quiet", "--yes", "--no-install-recommends", "install", name])
    return Path(_on_path(name))


def _debian(name: str, package: str) -> Path:
    installed = shutil.which(name)
    if installed:
        return Path(installed)
    folder = TOOLS / package
    path = folder / "usr" / "bin" / name
    with _lock(package):
        if not path.exists():
            apt, dpkg = _on_path("apt-get"), _on_path("dpkg")
            folder.mkdir(exist_ok=True)
            _install([apt, "--quiet", "download", package], folder)
            (archive,) = folder.glob(f"{package}_*.deb")
            _install([dpkg, "--extract", str(archive), str(folder)])
            archive.unlink()
    return path


def _on_path(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise ToolMissing(f"{name} is not installed")
    return path


def _install(command: Sequence[str], folder: Path = ROOT) -> None:
    completed = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=INSTALLATION_S)
    if completed.returncode:
        lines = completed.stderr.strip().splitlines() or ["no message"]
        raise ToolMissing(f"{' '.join(command)}: exit code {completed.returncode}: {lines[-1]}")


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Hold a lock between processes, such as those of two test runs."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    with (TOOLS / f".{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
