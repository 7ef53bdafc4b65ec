"""Kafka's command-line tools for tests: one JVM runs their main classes one after another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from verification.zookeeper.java import JVM, compiled
from verification.zookeeper.process import Process


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The exit status of a tool, and its two outputs."""

    status: int
    output: str
    errors: str


class ToolProcess(Process):
    """The JVM of the tools."""

    def __init__(self, folder: Path, libraries: Path) -> None:
        """``libraries`` has the tools' jars; ``folder`` is created if missing."""
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        log4j = folder / "log4j.properties"
        log4j.write_text("log4j.rootLogger=OFF\n")
        source = Path(__file__).parent / "KafkaTools.java"
        # The first setting is for the tools of Kafka 3, the second for those of Kafka 4.
        logging = [f"-Dlog4j.configuration=file:{log4j}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"]
        command = ["java", *JVM, "-Xmx192m", *logging, "-cp", compiled(source, libraries), source.stem]
        self._launch(command, folder, piped=True)

    def run_main(self, main_class: str, arguments: Sequence[str], stdin: str = "") -> ToolResult:
        """Run the ``main`` method of a class until it returns or exits."""
        request = {"class": main_class, "arguments": list(arguments), "input": stdin}
        return ToolResult(**json.loads(self._answer(json.dumps(request))))
