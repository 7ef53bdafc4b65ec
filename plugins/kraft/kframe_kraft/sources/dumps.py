"""The output of ``kafka-dump-log --cluster-metadata-decoder``, of a segment or snapshot, with any of its options.

A record is the JSON behind ``payload:``, or a line that is JSON alone. The lines of batches have offset, epoch and
time; control records are read as far as the image needs them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from kframe.plugin.kraft import LogError, RecordAndVersion, control, from_json
from kframe_kraft.batches import BatchPosition, RecordBatch, encode_control_batch, encode_data_batch, read_batch
from kframe_kraft.disk import Checkpoint, LogHistory, MetadataLog, SnapshotId
from kframe_kraft.disk.committed import committed_end, voters_of

_BATCH: Final = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: \d+ .*?partitionLeaderEpoch: (\d+) .*?isControl: (true|false)"
    r".*? CreateTime: (-?\d+) .*?isvalid: (true|false)"
)
_RECORD: Final = re.compile(r"(?:\| (?:offset: (\d+) .*?)?payload: )?(\{\"type\":.*\})")
_SNAPSHOT: Final = re.compile(r"Snapshot end offset: (\d+), epoch: (\d+)")
_FILE: Final = re.compile(r"Dumping .*?(\d{20})\.log")
_LEADER: Final = re.compile(r"\| offset: \d+ .*? LeaderChange:? (\{.*\})")
_BATCH_RECORDS: Final = 1000


def read_dump(lines: Iterable[str], name: str) -> LogHistory:
    """Return the history in the lines of a dump. ``name`` names it in errors.

    Raises LogError for a record that is malformed, or a log that does not begin at offset 0.
    """
    reader = _DumpReader(name)
    for number, line in enumerate(lines, 1):
        reader.read_line(number, line.rstrip("\r\n"))
    return reader.history()


class _DumpReader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._batches: list[RecordBatch] = []
        self._pending: list[RecordAndVersion] = []
        self._position = BatchPosition(0, 0, 0)
        self._first_offset: int | None = None
        self._end = 0
        self._snapshot: SnapshotId | None = None
        self._timestamp = 0

    def read_line(self, number: int, line: str) -> None:
        """Read one line. Lines without records, batches or a snapshot's end say nothing about the metadata."""
        where = f"{self._name}:{number}"
        if match := _RECORD.fullmatch(line.strip()):
            self._pending.append(_record(match[2], where))
            if len(self._pending) >= _BATCH_RECORDS:
                self._flush()
        elif match := _BATCH.match(line):
            self._flush()
            if match[6] != "true":
                raise LogError(where, "a batch that is not valid", "isvalid: true")
            self._start_batch(int(match[1]), int(match[2]), int(match[3]), int(match[5]))
        elif match := _SNAPSHOT.match(line):
            self._snapshot = SnapshotId(int(match[1]), int(match[2]))
        elif match := _LEADER.match(line):
            message = _leader_change(match[1], where)
            self._batches.append(read_batch(encode_control_batch([message], self._position), where=where))
        elif line.startswith("Dumping ") and self._first_offset is not None:
            raise LogError(where, "a second file", "the dump of a single file")
        elif match := _FILE.match(line):
            self._end = int(match[1])

    def history(self) -> LogHistory:
        """The history at the end of the dump."""
        self._flush()
        if not self._batches and self._snapshot is None:
            raise LogError(self._name, "no record", "output of kafka-dump-log --cluster-metadata-decoder")
        batches = tuple(self._batches)
        if self._snapshot is not None:
            data = tuple(batch for batch in batches if not batch.header.is_control)
            snapshot = Checkpoint(self._timestamp, 0, None, data)
            log = MetadataLog(self._snapshot.offset, self._snapshot.offset, ())
            end = committed_end(self._snapshot.offset, self._snapshot.offset, ())
            return LogHistory(self._snapshot, snapshot, log, None, (), end)
        if self._first_offset:
            raise LogError(self._name, f"a log from offset {self._first_offset}", "a log from offset 0, or a snapshot")
        voters = voters_of(batches, None, None)
        log = MetadataLog(0, self._end, batches)
        return LogHistory(SnapshotId(0, 0), None, log, None, voters, committed_end(self._end, 0, voters))

    def _start_batch(self, base: int, last: int, epoch: int, timestamp: int) -> None:
        if self._first_offset is None:
            self._first_offset = base
        elif base != self._end:
            raise LogError(self._name, f"base offset {base}", f"{self._end}, the end of the batch before")
        self._position = BatchPosition(base, epoch, timestamp)
        self._end, self._timestamp = last + 1, timestamp

    def _flush(self) -> None:
        if not self._pending:
            return
        position = self._position
        self._batches.append(read_batch(encode_data_batch(self._pending, position), where=self._name))
        base = position.base_offset + len(self._pending)
        self._position = BatchPosition(base, position.leader_epoch, position.timestamp)
        self._end = max(self._end, base)
        self._pending = []


def _record(text: str, where: str) -> RecordAndVersion:
    document = _document(text, where)
    try:
        return RecordAndVersion(*from_json(document))
    except LogError as error:
        raise LogError(**vars(error) | {"where": f"{where}, {error.where}"}) from error


def _leader_change(text: str, where: str) -> control.LeaderChangeMessage:
    document = _document(text, where)
    try:
        voters = tuple(control.LeaderChangeVoter(voter_id=int(voter["voterId"])) for voter in document["voters"])
        return control.LeaderChangeMessage(leader_id=int(document["leaderId"]), voters=voters)
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(where, text[:100], f"leaderId and voters ({error!r})") from error


def _document(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LogError(where, text[:100], f"a JSON object ({error})") from error
