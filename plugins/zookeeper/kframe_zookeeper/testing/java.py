"""Java programs for tests: what they need, and jars that Maven fetches once for each machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: A program in tests lives for seconds: start fast, compile little.
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
#: Has a JVM map the classes that a program loads from an archive, which saves half of a broker's start. An archive that
#: does not fit is passed over; what the JVM has to say of that would stand among what the program says.
_MAPPING: Final = ("-Xshare:auto", "-Xlog:disable")


def missing() -> str | None:
    """What this machine lacks to run Java programs; None if nothing."""
    lacking = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"no {' and no '.join(lacking)} on this machine" if lacking else None


def fetched(name: str, pom: str, variable: str, *properties: str) -> Path:
    """The folder of the jars that a ``pom`` beside this file lists; ``name`` tells versions apart.

    Fetched by Maven the first time, with these ``properties`` (``NAME=VALUE``). The environment's ``variable`` names
    another folder.
    """
    if chosen := os.environ.get(variable):
        return Path(chosen)
    cache = _cache(name)
    if not cache.exists():
        with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
            command = ["mvn", "-q", "-B", "-f", str(Path(__file__).parent / pom), "dependency:copy-dependencies"]
            subprocess.run(
                [*command, f"-DoutputDirectory={scratch}/jars", *(f"-D{name}" for name in properties)],
                check=True,
                cwd=scratch,
            )
            if not cache.exists():
                (Path(scratch) / "jars").rename(cache)
    return cache


def compiled(source: Path, libraries: Path) -> str:
    """The class path of a program that is one source file, and of the jars that it needs; compiled once."""
    jar = _cache(f"{source.stem}-{_digest(source.read_text(), str(libraries))}.jar")
    if not jar.exists():
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            made = Path(scratch) / "made.jar"
            command = ["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", f"{scratch}/classes", str(source)]
            subprocess.run(command, check=True, capture_output=True)
            with zipfile.ZipFile(made, "w") as archive:
                for path in sorted(Path(scratch, "classes").rglob("*.class")):
                    archive.write(path, path.relative_to(f"{scratch}/classes"))
            made.rename(jar)
    return f"{libraries}/*:{jar}"


def sharing(name: str, libraries: Path, train: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
    """Options of a JVM whose class path begins with these ``libraries``: it maps their classes instead of reading them.

    The first time ``train`` is called to run the program in such a JVM, with options of its own, to an orderly end.
    """
    program = Path(shutil.which("java") or "java").resolve()
    stamps = (str(path.stat().st_mtime_ns) for path in (program, libraries))
    archive = _cache(f"{name}-{_digest(str(program), str(libraries), *stamps)}.jsa")
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            made = Path(scratch) / "made.jsa"
            train((f"-XX:ArchiveClassesAtExit={made}", "-Xlog:disable"))
            if not made.exists():  # a JVM that cannot do so
                return ()
            for old in archive.parent.glob(f"{name}-*.jsa"):
                old.unlink()
            made.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}", *_MAPPING)


def _cache(name: str) -> Path:
    """Where something is kept that takes its time to make; the folder is there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kframe"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
