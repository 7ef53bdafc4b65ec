"""Java programs for tests: what they need, and jars that Maven fetches once for each machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

#: A program in tests lives for seconds: start fast, compile little.
JVM: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


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
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kframe" / name
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
            command = ["mvn", "-q", "-B", "-f", str(Path(__file__).parent / pom), "dependency:copy-dependencies"]
            subprocess.run(
                [*command, f"-DoutputDirectory={scratch}/jars", *(f"-D{one}" for one in properties)],
                check=True,
                cwd=scratch,
            )
            if not cache.exists():
                (Path(scratch) / "jars").rename(cache)
    return cache
