"""Read log directories and the sizes of replicas from what ``kafka-log-dirs --describe`` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
import numpy as np

from kframe.errors import InputError, SnapshotError
from kframe.model.arrays import Int32, Int64
from kframe.model.texts import short_repr
from kframe.ports.administration import DirectoryLog, LogDirectory, volume_bytes
from kframe.snapshot.decode import check_unique_keys, decode, text_repr

#: Most bytes of a replica. Sums of sizes are exact up to it.
BYTES_MAX: Final = 2**53

#: The lines before the document of each call of the tool.
_LINES: Final = (
    b"Querying brokers for log directories information",
    b"Received log directory information from brokers ",
)
_NAME: Final = re.compile(r"(.+)-([0-9]{1,10})")


class _LogDirReplica(msgspec.Struct, rename="camel"):
    partition: str
    size: Annotated[int, msgspec.Meta(ge=0, le=BYTES_MAX)]
    is_future: bool = False


class _LogDir(msgspec.Struct, rename="camel"):
    partitions: list[_LogDirReplica]
    log_dir: str = ""
    error: str | None = None
    total_bytes: int | None = None
    """This and the following are not in the tool's output, but in that of ``kframe snapshot capture``."""
    usable_bytes: int | None = None
    is_cordoned: bool = False


class _LogDirsOfBroker(msgspec.Struct, rename="camel"):
    broker: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    log_dirs: list[_LogDir]


class _LogDirsDocument(msgspec.Struct):
    brokers: list[_LogDirsOfBroker]
    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1


_DECODER: Final = msgspec.json.Decoder(_LogDirsDocument)


def is_log_dirs(document: bytes) -> bool:
    """Whether the content is output of ``kafka-log-dirs``, or its JSON."""
    start = document.lstrip()
    return start.startswith((b"{", *_LINES))


def read_log_dirs(document: bytes, where: str) -> tuple[list[str], Int32, Int64]:
    """Topic, partition and bytes of the largest replica of each partition. Future replicas do not count.

    The content may be the output of several calls. Raises InputError, also for a broker that it names twice.
    """
    sizes: dict[str, int] = {}
    for broker, _ in _brokers(document, where):
        for directory in broker.log_dirs:
            for replica in directory.partitions:
                if not replica.is_future:
                    sizes[replica.partition] = max(replica.size, sizes.get(replica.partition, 0))
    names = [_split(name, where) for name in sizes]
    partition = np.array([number for _, number in names], np.int32)
    return [topic for topic, _ in names], partition, np.fromiter(sizes.values(), np.int64, len(sizes))


def read_directories(document: bytes, where: str) -> dict[int, tuple[LogDirectory, ...]]:
    """The log directories of each broker, in the order of the output.

    The content may be the output of several calls. Raises InputError, also for a broker, a directory or a replica that
    it names twice, and for a directory without a path.
    """
    return {
        broker.broker: tuple(_directories(broker, f"{location} broker {broker.broker}"))
        for broker, location in _brokers(document, where)
    }


def _directories(broker: _LogDirsOfBroker, where: str) -> Iterator[LogDirectory]:
    paths, names = set[str](), set[tuple[str, bool]]()
    for directory in broker.log_dirs:
        if not directory.log_dir or directory.log_dir in paths:
            actual = f"{text_repr(directory.log_dir.encode())} again" if directory.log_dir else "none"
            raise InputError(f"{where} field logDir", actual, "the path of each log directory, once")
        paths.add(directory.log_dir)
        for replica in directory.partitions:
            name = (replica.partition, replica.is_future)
            if name in names:
                raise InputError(where, f"partition {short_repr(replica.partition)} again", "each replica once")
            names.add(name)
        logs = [DirectoryLog(*_split(log.partition, where), log.size, log.is_future) for log in directory.partitions]
        yield LogDirectory(
            directory.log_dir,
            logs,
            directory.error,
            volume_bytes(directory.total_bytes),
            volume_bytes(directory.usable_bytes),
            directory.is_cordoned,
        )


def _brokers(document: bytes, where: str) -> Iterator[tuple[_LogDirsOfBroker, str]]:
    """Each broker of the output, once, with the location of its document."""
    brokers = set[int]()
    for raw, location in _documents(document, where):
        decoded = decode(_DECODER, raw, location)
        _check_keys(raw, decoded, location)
        for broker in decoded.brokers:
            if broker.broker in brokers:
                raise InputError(location, f"broker {broker.broker} again", "each broker once")
            brokers.add(broker.broker)
            yield broker, location


def _documents(document: bytes, where: str) -> Iterator[tuple[bytes, str]]:
    """Each JSON document, which may have several lines, with its location."""
    lines: list[bytes] = []
    start = 1
    for number, line in enumerate(document.splitlines(keepends=True), start=1):
        text = line.strip()
        is_heading = text.startswith(_LINES)
        if lines and (is_heading or line.startswith(b"{")):
            yield b"".join(lines), f"{where}:{start}"
            lines = []
        if is_heading or (not lines and not text):
            continue
        if not lines:
            start = number
            if not text.startswith(b"{"):
                raise SnapshotError(f"{where}:{number}", text_repr(text), "a line of kafka-log-dirs --describe")
        lines.append(line)
    if not lines and start == 1 and not document.lstrip().startswith(b"{"):
        raise SnapshotError(where, "no JSON document", "the document of kafka-log-dirs --describe")
    if lines:
        yield b"".join(lines), f"{where}:{start}"


def _check_keys(raw: bytes, document: _LogDirsDocument, where: str) -> None:
    directories = [directory for broker in document.brokers for directory in broker.log_dirs]
    replicas = sum(len(directory.partitions) for directory in directories)
    of_directories = (b"partitions", b"logDir", b"error", b"totalBytes", b"usableBytes", b"isCordoned")
    check_unique_keys(
        raw,
        where,
        {
            b"version": 1,
            b"brokers": 1,
            b"broker": len(document.brokers),
            b"logDirs": len(document.brokers),
            **dict.fromkeys(of_directories, len(directories)),
            **dict.fromkeys((b"partition", b"size", b"isFuture"), replicas),
        },
    )


def _split(name: str, where: str) -> tuple[str, int]:
    """Topic and partition of a name."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[2]) > 2**31 - 1:
        raise InputError(where, f"partition {short_repr(name)}", "topic-partition")
    return match[1], int(match[2])
