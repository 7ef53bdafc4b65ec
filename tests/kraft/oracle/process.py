"""The Java process of the oracle: ``python -m tests.kraft.oracle.process [VERSION] < cases.jsonl > answers.jsonl``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from kframe.model.kraft.releases import Release, parse_release
from verification.kraft.kafka_records import metadata_jars
from verification.kraft.kafka_tools import node_jars
from verification.zookeeper.java import JVM, cached, compiled

SOURCES: Final = Path(__file__).with_name("java")
#: A line of Java for the releases from one on, and a comment that is a line for the releases before one.
_SINCE: Final = re.compile(r"^(?P<line>.*) // since (?P<release>\S+)$")
_BEFORE: Final = re.compile(r"^(?P<indent> *)//< (?P<release>\S+) (?P<line>.*)$")


def oracle_command(version: str | None = None) -> list[str]:
    """The command that starts the process, which is compiled on first use. Needs Maven and JDK 17 or newer.

    ``version`` is that of Kafka's classes; the default is 4.4.0, with the jars of the metadata module only.
    """
    options = [*JVM, "-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    jars = metadata_jars() if version is None else node_jars(version)
    sources = SOURCES if version is None else _adapted_sources(version)
    return ["java", *options, "-cp", compiled(sources, jars), "org.apache.kafka.controller.OracleMain"]


def _adapted_sources(version: str) -> Path:
    """A folder with the sources for the classes of a version."""
    release = parse_release(version)
    assert release is not None
    folder: Path = cached(f"kraft-oracle-{version}") / SOURCES.name
    folder.mkdir(parents=True, exist_ok=True)
    for path in SOURCES.glob("*.java"):
        (folder / path.name).write_text("".join(f"{line}\n" for line in _lines(path.read_text(), release)))
    return folder


def _lines(text: str, release: Release) -> list[str]:
    lines = []
    for line in text.splitlines():
        before = _BEFORE.match(line)
        if before is not None and release >= _release(before["release"]):
            continue
        code = line if before is None else before["indent"] + before["line"]
        since = _SINCE.match(code)
        if since is None or release >= _release(since["release"]):
            lines.append(code)
    return lines


def _release(text: str) -> Release:
    release = parse_release(text)
    assert release is not None, text
    return release


if __name__ == "__main__":
    sys.exit(subprocess.run(oracle_command(*sys.argv[1:]), check=False).returncode)
