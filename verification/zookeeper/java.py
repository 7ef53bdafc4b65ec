"""Java programs for tests: their requirements, and jars that Maven downloads once for each machine."""

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

#: Test programs run for seconds, so the JVM should start fast and compile little.
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
#: Map the loaded classes from an archive (CDS), which halves the start time of a broker.
#:
#: The JVM ignores an archive that does not match. Its log is disabled to keep it out of the program's output.
_MAPPING: Final = ("-Xshare:auto", "-Xlog:disable")


def missing() -> str | None:
    """The missing requirement for Java programs on this machine, or None."""
    lacking = [program for program in ("java", "mvn") if shutil.which(program) is None]
    return f"no {' and no '.join(lacking)} on this machine" if lacking else None


def fetched(name: str, pom: str, variable: str, *properties: str) -> Path:
    """The folder with the jars of a ``pom`` beside this file. ``name`` identifies the version.

    Maven downloads them on first use, with these ``properties`` (``NAME=VALUE``). The environment's ``variable``
    selects another folder.
    """
    if chosen := os.environ.get(variable):
        return Path(chosen)
    cache = cached(name)
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
    """The class path of a program, a source file or a folder of them, and of its jars. It is compiled once."""
    files = [source] if source.is_file() else sorted(source.glob("*.java"))
    jar = cached(f"{source.stem}-{digest(*(file.read_text() for file in files), str(libraries))}.jar")
    if not jar.exists():
        with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
            temporary = Path(scratch) / "made.jar"
            command = ["javac", "-nowarn", "-cp", f"{libraries}/*", "-d", f"{scratch}/classes", *map(str, files)]
            subprocess.run(command, check=True, capture_output=True)
            with zipfile.ZipFile(temporary, "w") as archive:
                for path in sorted(Path(scratch, "classes").rglob("*.class")):
                    archive.write(path, path.relative_to(f"{scratch}/classes"))
            temporary.rename(jar)
    return f"{libraries}/*:{jar}"


def sharing(name: str, libraries: Path, train: Callable[[tuple[str, ...]], None]) -> tuple[str, ...]:
    """JVM options that map classes from an archive. The class path must begin with these ``libraries``.

    On first use, ``train`` runs the program to a normal exit with the options that create the archive.
    """
    program = Path(shutil.which("java") or "java").resolve()
    stamps = (str(path.stat().st_mtime_ns) for path in (program, libraries))
    archive = cached(f"{name}-{digest(str(program), str(libraries), *stamps)}.jsa")
    if not archive.exists():
        with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
            temporary = Path(scratch) / "made.jsa"
            train((f"-XX:ArchiveClassesAtExit={temporary}", "-Xlog:disable"))
            if not temporary.exists():  # This JVM does not support archives.
                return ()
            for old in archive.parent.glob(f"{name}-*.jsa"):
                old.unlink(missing_ok=True)
            temporary.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}", *_MAPPING)


def cached(name: str) -> Path:
    """The path of a file or folder that is expensive to create. Its parent is created if missing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kframe"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def digest(*parts: str) -> str:
    """A short digest, for names of files in the cache."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
