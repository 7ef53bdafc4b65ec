"""The Java process of the oracle: ``python -m tests.kraft.oracle.process < cases.jsonl > answers.jsonl``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from verification.kraft.kafka_records import metadata_jars
from verification.zookeeper.java import JVM, compiled

SOURCES: Final = Path(__file__).with_name("java")


def oracle_command() -> list[str]:
    """The command that starts the process, which is compiled on first use. Needs Maven and JDK 17 or newer."""
    options = [*JVM, "-Xms256m", "-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
    return ["java", *options, "-cp", compiled(SOURCES, metadata_jars()), "org.apache.kafka.controller.OracleMain"]


if __name__ == "__main__":
    sys.exit(subprocess.run(oracle_command(), check=False).returncode)
