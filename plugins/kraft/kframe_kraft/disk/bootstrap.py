"""The records that a node is formatted with, in both layouts.

Until Kafka 4.3 they are in ``bootstrap.checkpoint`` of ``metadata.log.dir``. Since 4.4 (KIP-1170) they are in the
snapshot 0-0 of the log, which also has the voters of a dynamic quorum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from kframe.plugin.kraft import RecordAndVersion, control
from kframe_kraft.detection import LOG_DIRECTORY
from kframe_kraft.disk.checkpoints import Checkpoint, CheckpointWriter, read_checkpoint
from kframe_kraft.disk.names import BOOTSTRAP_ID

FILE_NAME: Final = "bootstrap.checkpoint"


def read_bootstrap(directory: Path) -> Checkpoint | None:
    """Return the bootstrap records of a ``metadata.log.dir``, or None if it has none.

    Records are those of snapshot 0-0, else those of ``bootstrap.checkpoint``; voters are those of snapshot 0-0.
    """
    former = _read(directory / FILE_NAME)
    current = _read(directory / LOG_DIRECTORY / BOOTSTRAP_ID.file_name)
    if current is None or former is None:
        return former if current is None else current
    with_records = current if current.records() else former
    return replace(
        with_records, timestamp=current.timestamp, kraft_version=current.kraft_version, voters=current.voters
    )


def write_bootstrap(
    directory: Path, records: Sequence[RecordAndVersion], *, now: int, voters: control.VotersRecord | None = None
) -> None:
    """Write both layouts into a ``metadata.log.dir``, so that any release of Kafka 4 can read it.

    ``now`` is in milliseconds since the epoch. With ``voters``, kraft.version is 1.
    """
    log = directory / LOG_DIRECTORY
    log.mkdir(exist_ok=True)
    with CheckpointWriter(directory / FILE_NAME, BOOTSTRAP_ID, timestamp=0, now=now) as writer:
        writer.add_records(records)
        writer.finish()
    path, level = log / BOOTSTRAP_ID.file_name, 0 if voters is None else 1
    with CheckpointWriter(path, BOOTSTRAP_ID, timestamp=0, now=now, kraft_version=level, voters=voters) as writer:
        writer.add_records(records)
        writer.finish()


def _read(path: Path) -> Checkpoint | None:
    try:
        return read_checkpoint(path)
    except FileNotFoundError:
        return None
