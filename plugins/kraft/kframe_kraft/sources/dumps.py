"""The output of ``kafka-dump-log --cluster-metadata-decoder``, of a segment or snapshot, with any of its options.

A record is the JSON behind ``payload:``, or a line that is JSON alone. The lines of batches have offset, epoch and
time; control records are read as far as the image needs them. A batch without some of its records is refused, because
replay needs every record.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from kframe.plugin import counted
from kframe.plugin.columns import Int64
from kframe.plugin.kraft import LogError, RecordAndVersion, control, from_json
from kframe.plugin.settings import INT32_MAX, INT64_MAX
from kframe.plugin.snapshot import unique_keys
from kframe_kraft.batches import (
    BatchHeader,
    BatchPosition,
    RecordBatch,
    encode_control_batch,
    encode_data_batch,
    read_batch,
)
from kframe_kraft.disk import Checkpoint, LogHistory, MetadataLog, SnapshotId
from kframe_kraft.disk.batch_files import BatchSource
from kframe_kraft.disk.committed import voters_in
from kframe_kraft.disk.names import BOOTSTRAP_ID

_BATCH: Final = re.compile(
    r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?partitionLeaderEpoch: (\d+) .*?isControl: (true|false)"
    r".*? CreateTime: (-?\d+) .*?isvalid: (true|false)"
)
_RECORD: Final = re.compile(r"(?:(?:\| )?(?:offset: (\d+) .*?)?payload: )?(\{\"type\"\s*:.*\})")
#: A record that the tool could not decode, or did not decode as metadata.
_SKIPPED: Final = re.compile(r"(?:\| )?(?:offset: \d+ .*?)?payload: (Error at \d+, skipping.*)")
#: What the tool prints when it ends early.
_FAILURE: Final = re.compile(r"Exception in thread |Error[: ]")
_BOOTSTRAP: Final = re.compile(r"Dumping .*bootstrap\.checkpoint|KRaft bootstrap snapshot")
_DECODER: Final = "output of kafka-dump-log with --cluster-metadata-decoder"
_SNAPSHOT: Final = re.compile(r"Snapshot end offset: (\d+), epoch: (\d+)")
_FILE: Final = re.compile(r"Dumping .*?(\d{20})\.log")
_LEADER: Final = re.compile(r"\| offset: (\d+) .*? LeaderChange:? (\{.*\})")
_KRAFT_VERSION: Final = re.compile(r"\| offset: (\d+) .*? KRaftVersion:? (\{.*\})")
#: A line of ``--skip-record-metadata`` has no offset; a control record then has an empty line.
_WITH_METADATA: Final = "| offset: "
#: A control record that the tool names, without its content.
_CONTROL_TYPE: Final = re.compile(r"\| offset: \d+ .*? controlType: \w+\((\d+)\)")
_TYPES: Final = {2: "quorum.leader", 5: "quorum.kraft_version"}
_SKIPS: Final = "kafka-dump-log --skip-record-metadata prints no control record"
_OLDER: Final = "this kafka-dump-log does not print the control record"
_RECORDS_ONLY: Final = "the dump has records only"
_BATCH_RECORDS: Final = 1000
#: Digits of the largest int64, and leading zeros in the name of a file.
_DIGITS_MAX: Final = 20


def read_dump(source: BatchSource) -> LogHistory:
    """Return the history in a dump. All of it is checked.

    Raises LogError for a record that is malformed, skipped or missing, and for a log that does not begin at offset 0.
    """
    reader, last, voters, has_records = _DumpReader(source.name), None, None, False
    for batch in reader.batches(source):
        last = batch.header
        has_records = has_records or not last.is_control
        if last.is_control:
            voters = voters_in(batch) or voters
    if reader.is_bootstrap or reader.snapshot_id == BOOTSTRAP_ID:
        raise LogError(source.name, "the records that a node is formatted with", "a later snapshot, or a segment")
    if reader.snapshot_id is None and not has_records:
        raise LogError(source.name, "no record", _DECODER)
    batches = _DumpBatches(source)
    if reader.snapshot_id is not None:
        if not reader.is_complete_snapshot:
            raise LogError(source.name, "no footer: the dump is cut off", "the dump of a whole snapshot")
        end = reader.snapshot_id.offset
        snapshot = Checkpoint(reader.timestamp, reader.kraft_version, None, batches)
        return LogHistory(reader.snapshot_id, snapshot, MetadataLog(end, end), absent=reader.absent)
    if reader.first_offset:
        raise LogError(source.name, f"a log from offset {reader.first_offset}", "a log from offset 0, or a snapshot")
    if reader.first_offset is None:
        columns = (*_TYPES.values(), "quorum.epoch", "log.offset")
        reader.absent |= dict.fromkeys(columns, _RECORDS_ONLY)
    log = MetadataLog(0, reader.end, batches, last, voters)
    return LogHistory(BOOTSTRAP_ID, None, log, absent=reader.absent)


class _DumpBatches:
    """The batches of a dump, which is read anew in each iteration. Snapshots have their data batches only."""

    def __init__(self, source: BatchSource) -> None:
        self._source = source

    def __iter__(self) -> Iterator[RecordBatch]:
        reader = _DumpReader(self._source.name)
        for batch in reader.batches(self._source):
            if not (batch.header.is_control and reader.snapshot_id is not None):
                yield batch

    def headers(self) -> Iterator[BatchHeader]:
        """See ``LogBatches.headers``."""
        return (batch.header for batch in self)

    def following(self, count: int, size: int) -> Iterator[RecordBatch]:
        """See ``LogBatches.following``. The lines before are read, too."""
        return islice(self, count, None)

    def find(self, pattern: bytes, ends: Int64) -> Iterator[int]:
        """See ``LogBatches.find``."""
        return (number for number, batch in enumerate(self) if pattern in batch.payload.tobytes())


class _DumpReader:
    """Reads a dump line by line. The attributes are those of the lines so far."""

    def __init__(self, name: str) -> None:
        self.first_offset: int | None = None
        self.end = 0
        self.snapshot_id: SnapshotId | None = None
        self.timestamp = 0
        self.kraft_version = 0
        self.is_bootstrap = False
        self.is_complete_snapshot = True
        """Whether the last batch is that of the footer. True without the lines of batches."""
        self.absent: dict[str, str] = {}
        """See ``LogHistory.absent``."""
        self._name = name
        self._batch_line = ""
        self._lacks_control_records = False
        """Whether the current batch is one of control records, without a line of any of them so far."""
        self._missing = self._count = 0
        """Records of the current batch: those whose lines are still missing, and all."""
        self._has_records = False
        """Whether an earlier batch had records."""
        self._pending: list[RecordAndVersion] = []
        self._position = BatchPosition(0, 0, 0)

    def batches(self, source: BatchSource) -> Iterator[RecordBatch]:
        """Yield the batches. Other lines than those of records, batches and snapshot ends are ignored."""
        with source.open("rb") as file, io.TextIOWrapper(file, "utf-8", "replace", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                yield from self._read_line(number, line.rstrip("\r\n"))
        self._end_batch()
        yield from self._flush()

    def _read_line(self, number: int, line: str) -> Iterator[RecordBatch]:
        where = f"{self._name}:{number}"
        if line.startswith(_WITH_METADATA):
            self._lacks_control_records = False
        if match := _RECORD.fullmatch(line.strip()):
            self._check_offset(match[1], where)
            self._pending.append(_record(match[2], where))
            self._missing -= self._count > 0
            if len(self._pending) >= _BATCH_RECORDS:
                yield from self._flush()
        elif match := _SKIPPED.match(line.strip()):
            raise LogError(
                where,
                f"a record that the dump lacks, because kafka-dump-log did not decode it ({match[1][:200]})",
                "every record: use kafka-dump-log of the node's release",
            )
        elif line.startswith("baseOffset: "):
            self._end_batch()
            yield from self._flush()
            self._start_batch(line, where)
        elif match := _SNAPSHOT.match(line):
            self.snapshot_id = SnapshotId(_number(match[1], INT64_MAX, where), _number(match[2], INT32_MAX, where))
        elif match := _LEADER.match(line):
            yield self._control_batch(_leader_change(match[2], where), _number(match[1], INT64_MAX, where), where)
        elif match := _KRAFT_VERSION.match(line):
            record = _kraft_version(match[2], where)
            self.kraft_version = record.k_raft_version
            yield self._control_batch(record, _number(match[1], INT64_MAX, where), where)
        elif (match := _CONTROL_TYPE.match(line)) and int(match[1]) in _TYPES:
            self.absent[_TYPES[int(match[1])]] = _OLDER
        elif line.startswith("Dumping ") and self.first_offset is not None:
            raise LogError(where, "a second file", "the dump of a single file")
        elif _BOOTSTRAP.match(line):
            self.is_bootstrap = True
        elif match := _FILE.match(line):
            self.end = _number(match[1], INT64_MAX, where)
        elif _FAILURE.match(line):
            raise LogError(where, repr(line[:100]), "a complete dump: the tool failed here")

    def _start_batch(self, line: str, where: str) -> None:
        match = _BATCH.match(line)
        if match is None:
            raise LogError(where, repr(line[:100]), "the line of a batch")
        if match[7] != "true":
            raise LogError(where, "a batch that is not valid", "isvalid: true")
        base, last, count = (_number(match[group], INT64_MAX, where) for group in (1, 2, 3))
        epoch, timestamp = _number(match[4], INT32_MAX, where), _number(match[6], INT64_MAX, where)
        if count != last - base + 1:
            raise LogError(where, f"{counted(count, 'record')} of offset {base} to {last}", "a record of each offset")
        if self.first_offset is None:
            self.first_offset = base
        elif base != self.end:
            raise LogError(self._name, f"base offset {base}", f"{self.end}, the end of the batch before")
        self._position = BatchPosition(base, epoch, timestamp)
        self.end, self.timestamp = last + 1, timestamp
        self.is_complete_snapshot = is_control = match[5] == "true"
        self._batch_line, self._missing = where, 0 if is_control else count
        self._count, self._lacks_control_records = self._missing, is_control

    def _check_offset(self, text: str | None, where: str) -> None:
        """Raise LogError for another offset than that of the next record in the current batch."""
        expected = self._position.base_offset + len(self._pending)
        if text is not None and self._count and _number(text, INT64_MAX, where) != expected:
            raise LogError(where, f"offset {text}", f"{expected}, the next offset of the batch")

    def _end_batch(self) -> None:
        """Raise LogError unless each record of the current data batch had a line."""
        if self._lacks_control_records:
            self.absent |= dict.fromkeys(_TYPES.values(), _SKIPS)
        if self._missing:
            lines = self._count - self._missing
            expected = "a complete dump" if lines or self._has_records else _DECODER
            raise LogError(
                self._batch_line, f"{lines} of {counted(self._count, 'record')} of the batch", f"all, in {expected}"
            )
        self._has_records = self._has_records or self._count > 0

    def _control_batch(self, record: control.ControlRecord, offset: int, where: str) -> RecordBatch:
        position = BatchPosition(offset, self._position.leader_epoch, self._position.timestamp)
        return read_batch(encode_control_batch([record], position), where=where)

    def _flush(self) -> Iterator[RecordBatch]:
        if not self._pending:
            return
        position = self._position
        yield read_batch(encode_data_batch(self._pending, position), where=self._name)
        base = position.base_offset + len(self._pending)
        self._position = BatchPosition(base, position.leader_epoch, position.timestamp)
        self.end = max(self.end, base)
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


def _kraft_version(text: str, where: str) -> control.KRaftVersionRecord:
    document = _document(text, where)
    try:
        return control.KRaftVersionRecord(k_raft_version=int(document["kRaftVersion"]))
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(where, text[:100], f"kRaftVersion ({error!r})") from error


def _number(text: str, limit: int, where: str) -> int:
    """A number of the tool, which Kafka stores as int32 or int64. Raises LogError for a larger one."""
    number = int(text) if len(text) <= _DIGITS_MAX else limit + 1
    if abs(number) > limit:
        raise LogError(where, text[:100], f"a number of at most {limit}")
    return number


def _document(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise LogError(where, text[:100], f"a JSON object ({error})") from error
