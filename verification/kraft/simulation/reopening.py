"""Logs that are opened again: with the end cut off, and with a malformed file of epochs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from kframe_kraft.errors import LogError
from kframe_kraft.log import DurableLog, LogSettings, open_log
from kframe_kraft.log.epochs import FILE_NAME, read_epochs

from verification.kraft.simulation.history import WrittenBatch, batches_of
from verification.kraft.simulation.log_model import snapshot_ids

_EPOCHS: Final = {
    "0\n2\n1 0\n3 7\n": {1: 0, 3: 7},
    "0\n0\n": {},
    "1\n1\n1 0\n": None,
    "0\n2\n1 0\n": None,
    "0\n1\n1 0\n2 3\n": None,
    "0\n1\n1 0 0\n": None,
    "0\n1\n1\n": None,
    "0\n1\nx 0\n": None,
    "0\n1\n1 x\n": None,
    "0\n1\n-1 0\n": None,
    "0\n2\n3 0\n1 7\n": None,
    "0\n2\n1 7\n3 0\n": None,
    "0\n2\n1 0\n1 7\n": None,
    "0\n1\n1 9223372036854775808\n": None,
    "": None,
}


def epoch_file_problems() -> Iterator[str]:
    """Read files of epochs. None: it must be refused."""
    with tempfile.TemporaryDirectory() as name:
        if read_epochs(Path(name)) is not None:
            yield "K6: epochs are read without a file"
        for content, expected in _EPOCHS.items():
            (Path(name) / FILE_NAME).write_text(content)
            try:
                stored = read_epochs(Path(name))
                read = None if stored is None else dict(stored)
            except LogError:
                read = None
            if read != expected:
                yield f"K6: the epochs {content!r} are read as {read}, expected {expected}"


def truncation_problems(
    log: DurableLog, settings: LogSettings, batches: Sequence[WrittenBatch], random: Random
) -> Iterator[str]:
    """Truncate a copy of a log, twice, append to it, and open it again."""
    with tempfile.TemporaryDirectory(dir=log.directory.parent.parent) as name:
        directory = Path(name) / log.directory.name
        shutil.copytree(log.directory, directory)
        (directory / "acknowledged").unlink(missing_ok=True)
        copy = open_log(directory, settings).log
        if copy.synced_end != copy.end:
            yield f"K6: an opened log ends at {copy.end}, and is durable to {copy.synced_end}"
        remaining = [batch for batch in batches if batch.end > copy.start]
        newest = max((each.offset for each in snapshot_ids(directory)), default=0)
        for _ in range(2):
            offset = random.randint(max(copy.start, newest), copy.end)
            copy.truncate(offset)
            remaining = [batch for batch in remaining if batch.end <= offset]
            end = remaining[-1].end if remaining else copy.start
            if copy.end != end:
                yield f"K6: a log that is truncated at {offset} ends at {copy.end}, expected {end}"
                return
        for batch in [batch for batch in batches if batch.base >= copy.end][:2]:
            copy.append(batch.content)
            remaining.append(batch)
        copy.sync()
        for opened in (copy, open_log(directory, settings).log):
            if list(_contents(opened)) != [batch.content for batch in remaining]:
                yield "K6: a log that was truncated has other batches"


def _contents(log: DurableLog) -> Iterator[bytes]:
    offset = log.start
    while offset < log.end:
        for batch in batches_of(log.read(offset, 1 << 30)):
            yield batch.content
            offset = batch.end
