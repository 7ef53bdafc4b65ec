"""Kafka 4.4's own classes of records, batches and snapshots, in a Java process that answers line by line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from kframe_kraft.records import control_to_json, to_json

from kframe.plugin.kraft import RecordAndVersion, control
from verification.zookeeper.java import JVM, compiled, fetched

_HERE = Path(__file__).parent


def metadata_jars() -> Path:
    """The folder with the jars of Kafka 4.4's metadata module. KFRAME_KRAFT_LIBS selects another folder."""
    return fetched("kraft-4.4.0", str(_HERE / "pom.xml"), "KFRAME_KRAFT_LIBS")


class KafkaRecords:
    """The process. It is a context manager. A method raises ValueError with Kafka's message if Kafka refuses."""

    def __enter__(self) -> Self:
        class_path = compiled(_HERE / "RecordOracle.java", metadata_jars())
        self._process = subprocess.Popen(
            ["java", *JVM, "-cp", class_path, "RecordOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def convert(self, versioned: RecordAndVersion, encoded: bytes) -> tuple[bytes, Any]:
        """Return Kafka's bytes of a record that it reads as JSON, and Kafka's JSON of the encoded record."""
        raw, _, document = self._ask("record", json.dumps(to_json(*versioned)), encoded.hex()).partition("\t")
        return bytes.fromhex(raw), json.loads(document)

    def encode_control(self, record: control.ControlRecord) -> bytes:
        """Return Kafka's bytes of a control record's value."""
        name = type(record).__name__
        return bytes.fromhex(self._ask("control", name, str(record.version), json.dumps(control_to_json(record))))

    def encode_batch(self, values: Sequence[bytes], codec: int) -> bytes:
        """Return Kafka's batch of the values: base offset 17, leader epoch 3, timestamp 1234."""
        return bytes.fromhex(self._ask("batch", str(codec), ",".join(value.hex() for value in values)))

    def read_batches(self, batches: bytes) -> list[bytes]:
        """Return the values of batches that Kafka has validated."""
        return [bytes.fromhex(value) for value in self._ask("values", batches.hex()).split(",")]

    def read_checkpoint(self, path: Path) -> list[Any]:
        """Return Kafka's JSON of the data records of a snapshot, and the class name of each control record."""
        documents: list[Any] = json.loads(self._ask("checkpoint", str(path)))
        return documents

    def write_checkpoint(self, path: Path, records: Sequence[RecordAndVersion]) -> None:
        """Let Kafka write a snapshot."""
        self._ask("write", str(path), json.dumps([to_json(*record) for record in records]))

    def _ask(self, *parts: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(parts) + "\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().rstrip("\n")
        if reply.startswith("ERROR") or not reply:
            raise ValueError(reply or "the process has ended")
        return reply
