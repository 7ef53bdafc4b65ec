"""Lines that shells, containers and loggers put around the output of a tool, and lines of a tool that failed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from kframe.errors import SnapshotError
from kframe.snapshot import files, read_snapshot
from tests.snapshot.samples import CONTENT

TEXTS: Final = Path(__file__).parent / "texts"

BEFORE: Final = {
    "kubectl": 'Defaulted container "kafka" out of: kafka, exporter, init (init)\n',
    "kubectl run": "If you don't see a command prompt, try pressing enter.\n",
    "kubectl without a terminal": "Unable to use a TTY - input is not a terminal or the right kind of file\n",
    "docker": "Unable to find image 'apache/kafka:4.1.0' locally\n4.1.0: Pulling from apache/kafka\n"
    "0a9a5dfd008f: Pull complete\nDigest: sha256:aa11\nStatus: Downloaded newer image for apache/kafka:4.1.0\n",
    "docker compose": 'time="2026-11-28T06:00:00Z" level=warning msg="version is obsolete"\nAttaching to kafka-1\n',
    "podman": "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.\n",
    "ssh": "Warning: Permanently added 'b1' (ED25519) to the list of known hosts.\n",
    "log4j 1": "DEPRECATED: using log4j 1.x configuration.\nlog4j:WARN No appenders for logger (kafka).\n",
    "log4j 1 without a log file": "log4j:ERROR setFile(null,true) call failed.\n"
    "java.io.FileNotFoundException: tools.log (Permission denied)\n\tat java.base/open(Unknown Source)\n",
    "log4j 2": "2026-11-28 06:00:00,123 WARN [AdminClient] retrying (org.apache.kafka.clients.NetworkClient)\n",
    "slf4j 2": "SLF4J(W): No SLF4J providers were found.\n",
    "Java": "WARNING: A terminally deprecated method in sun.misc.Unsafe has been called\n",
    "librdkafka": "%3|1700000000.123|FAIL|rdkafka#producer-1| [thrd:b4:9092/4]: Connection refused\n",
    "bitnami": "\x1b[38;5;6mkafka \x1b[38;5;5m06:00:00.12 \x1b[0m\x1b[38;5;2mINFO \x1b[0m ==> Welcome\n",
    "bash": "$ kafka-topics.sh --describe\n",
    "bash with a user": "appuser@kafka-0:/opt/kafka$ bin/kafka-topics.sh --describe\n",
    "bash in brackets": "[kafka@my-cluster-kafka-0 kafka]$ bin/kafka-topics.sh --describe\n",
    "bash without a name": "I have no name!@kafka-0:/$ kafka-topics.sh --describe\n",
    "sh": "sh-5.1# kafka-topics.sh --describe\n/ # kafka-topics.sh --describe\n",
    "zsh": "me@laptop ~ % kafka-topics --describe\n",
    "PowerShell": "PS C:\\kafka> bin\\windows\\kafka-topics.bat --describe\n",
    "set -x": "+ kafka-topics.sh --describe\n++ hostname\n",
    "script": "Script started on 2026-11-28 06:00:00+00:00\n",
}
AFTER: Final = {
    "kubectl": 'pod "kafka-client" deleted\n',
    "kubectl with a namespace": 'pod "kafka-client" deleted from default namespace\n',
    "docker compose": "kafka-1 exited with code 0\n",
    "prompt": "appuser@kafka-0:/opt/kafka$ \n",
    "prompt without a line feed": "$ ",
    "session": "exit\nConnection to 10.0.0.4 closed.\n",
    "blank lines": "\n\n",
}
FAILURES: Final = {
    "kubectl": "command terminated with exit code 1\n",
    "kubectl error": "error: unable to upgrade connection: container not found\n",
    "docker compose": "kafka-1 exited with code 137\n",
    "log4j": "[2026-11-28 06:00:00,000] ERROR org.apache.kafka.common.errors.TimeoutException: timed out\n",
    "kafka-topics": "Error while executing topic command : Timed out waiting for a node assignment\n",
    "Java": 'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n',
    "kcat": "% ERROR: Failed to acquire metadata: Local: Broker transport failure\n",
    "a dump": "Error at 103, skipping. Exception: java.lang.RuntimeException\n",
}


def digest(path: Path, content: bytes, source_format: str) -> str:
    path.write_bytes(content)
    return read_snapshot(path, source_format).digest()


@pytest.mark.parametrize("noise", BEFORE)
@pytest.mark.parametrize("source_format", CONTENT)
def test_lines_before_output_are_skipped(source_format: str, noise: str, tmp_path: Path) -> None:
    path, text = tmp_path / "c", CONTENT[source_format]
    path.write_text(BEFORE[noise] + text)
    assert read_snapshot(path).digest() == digest(path, text.encode(), source_format)


@pytest.mark.parametrize("noise", AFTER)
@pytest.mark.parametrize("source_format", CONTENT)
def test_lines_after_output_are_skipped(source_format: str, noise: str, tmp_path: Path) -> None:
    path, text = tmp_path / "c", CONTENT[source_format].rstrip("\n") + "\n"
    path.write_text(text + AFTER[noise])
    assert read_snapshot(path).digest() == digest(path, text.encode(), source_format)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("source_format", CONTENT)
def test_lines_of_failed_tool_are_refused(source_format: str, failure: str, after: bool, tmp_path: Path) -> None:
    path, text = tmp_path / "c", CONTENT[source_format].rstrip("\n") + "\n"
    path.write_text(text + FAILURES[failure] if after else FAILURES[failure] + text)
    with pytest.raises(SnapshotError):
        read_snapshot(path, source_format)


PREFIXES: Final[dict[str, Callable[[str], str]]] = {
    "kubectl logs --timestamps": lambda line: f"2026-11-28T06:20:11.123456789Z {line}",
    "kubectl logs --prefix": lambda line: f"[pod/kafka-0/kafka] {line}",
    "docker logs -t": lambda line: f"2026-11-28T06:20:11.123456789+01:00 {line}",
    "docker compose logs": lambda line: f"kafka-1  | {line}",
    "docker compose logs in colour": lambda line: f"\x1b[36mkafka-1  |\x1b[0m {line}",
    "docker compose logs -t": lambda line: f"kafka_1  | 2026-11-28T06:20:11.123Z {line}",
    "colours": lambda line: line.replace(":", "\x1b[0m:", 1).replace("Topic", "\x1b[1;32mTopic", 1),
    "colours of grep": lambda line: line.replace("t", "\x1b[01;31m\x1b[Kt\x1b[m\x1b[K"),
}


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("source_format", CONTENT)
def test_prefixes_and_colours_are_removed(
    source_format: str, prefix: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_BLOCK_BYTES", block)
    path, text = tmp_path / "c", CONTENT[source_format]
    if source_format in ("kcat", "reassignment"):
        text = json.dumps(json.loads(text), indent=1)
    lines = (BEFORE["bash"] + text).splitlines()
    path.write_text("".join(f"{PREFIXES[prefix](line)}\n" for line in lines))
    assert read_snapshot(path).digest() == digest(path, text.encode(), source_format)


@pytest.mark.parametrize("name", sorted(path.name for path in TEXTS.glob("noise-*.txt")))
def test_listing_with_lines_of_containers_and_terminals(name: str) -> None:
    snapshot = read_snapshot(TEXTS / name)
    assert (snapshot.topics.names, len(snapshot)) == (("clicks", "pay.events"), 4)


def test_log_lines_of_librdkafka_before_kcat_output() -> None:
    assert len(read_snapshot(TEXTS / "kcat-noise.json")) == 3


def test_binary_content_is_not_cleaned(tmp_path: Path) -> None:
    content = b"\x00\x1b[0mkafka-1  | x\n" * 3
    path = tmp_path / "c.gz"
    path.write_bytes(gzip.compress(content))
    assert files.peek(path) == content
