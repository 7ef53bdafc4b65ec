"""Malformed metadata logs and dumps of them: the commands that read them, and the text of the error."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import UUID

from crc32c import crc32c

from kframe.plugin.kraft import records
from tests.cli.malformed_texts import MalformedFile
from verification.kraft.written_log import (
    ORDERS,
    START_MS,
    WrittenLog,
    change,
    partition,
    registration,
    small_cluster,
)

_HEADER_BYTES: Final = 61
#: Offsets in the header of a batch, and a codec above those of Kafka.
_LENGTH, _CRC, _ATTRIBUTES, _LAST_DELTA, _COUNT, _CODEC = 8, 17, 21, 23, 57, 7
SEGMENT: Final = f"{0:020}.log"


def _log(fill: Callable[[WrittenLog], object]) -> Callable[[Path], None]:
    """A node's directory with a log of offsets 0 to 10, and what ``fill`` does with it."""

    def make(path: Path) -> None:
        log = small_cluster(path)
        log.append(change(0, isr=(1, 2)))
        fill(log)

    return make


def _appended(*content: records.MetadataRecord) -> Callable[[Path], None]:
    return _log(lambda log: log.append(*content))


def _last_batch(edit: Callable[[bytearray], bytes | None]) -> Callable[[Path], None]:
    """A log whose last batch is edited. Its length and its CRC are right: no torn write leaves such a batch."""

    def fill(log: WrittenLog) -> None:
        before = len(log.data)
        log.append(change(0, isr=(1, 3)))
        data, batch = log.data[:before], bytearray(log.data[before:])
        batch = bytearray(edit(batch) or batch)
        batch[_LENGTH : _LENGTH + 4] = (len(batch) - _LENGTH - 4).to_bytes(4, "big")
        batch[_CRC : _CRC + 4] = crc32c(bytes(batch[_ATTRIBUTES:])).to_bytes(4, "big")
        (log.log / SEGMENT).write_bytes(data + bytes(batch))

    return _log(fill)


def _number(position: int, number: int, size: int = 4) -> Callable[[Path], None]:
    def edit(batch: bytearray) -> None:
        batch[position : position + size] = number.to_bytes(size, "big", signed=True)

    return _last_batch(edit)


def _body(change_body: Callable[[bytes], bytes], codec: int = 0) -> Callable[[Path], None]:
    def edit(batch: bytearray) -> bytes:
        batch[_ATTRIBUTES : _ATTRIBUTES + 2] = codec.to_bytes(2, "big")
        return bytes(batch[:_HEADER_BYTES]) + change_body(bytes(batch[_HEADER_BYTES:]))

    return _last_batch(edit)


def _file(name: str, content: str | bytes) -> Callable[[Path], None]:
    """A log with this content of ``meta.properties`` or of ``quorum-state``."""

    def fill(log: WrittenLog) -> None:
        directory = log.log if name == "quorum-state" else log.directory
        (directory / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return _log(fill)


def _bomb() -> bytes:
    return gzip.compress(bytes(65 << 20), 1)


_IDENTITY: Final = "version=1\ncluster.id=c\n"
_QUORUM: Final = '{"data_version":0,"leaderId":1,"leaderEpoch":%s,"votedId":-1,"currentVoters":[]%s}'
_UNKNOWN: Final = records.RemoveTopicRecord(topic_id=UUID(int=8))
_SLASH: Final = records.TopicRecord(name="a/b", topic_id=UUID(int=8))
_AGAIN: Final = records.TopicRecord(name="other", topic_id=ORDERS)
_MIN_ISR: Final = records.ConfigRecord(resource_type=2, resource_name="orders", name="min.insync.replicas", value="x")
_LEVEL: Final = records.FeatureLevelRecord(name="metadata.version", feature_level=-1)
_SHOW: Final = "snapshot show F"
LOGS: Final = [
    MalformedFile(name, content, _SHOW, message)
    for name, content, message in (
        ("count", _number(_COUNT, 2**31 - 1), "byte 889: found 2,147,483,647 records, last offset delta 0"),
        ("count-negative", _number(_COUNT, -1), "byte 889: found -1 records"),
        ("delta", _number(_LAST_DELTA, 5), "byte 889: found 1 record, last offset delta 5"),
        ("codec", _number(_ATTRIBUTES, _CODEC, 2), "byte 889: found compression codec 7, expected 0 to 4"),
        ("control", _number(_ATTRIBUTES, 0x20, 2), "offset 10: found another key or value"),
        ("record-length", _body(lambda body: b"\x09" + body[1:]), "byte 889: found record 0 malformed"),
        ("varint", _body(lambda body: b"\xff" * 11 + body), "byte 889: found record 0 malformed"),
        ("trailing", _body(lambda body: body + b"more"), "byte 889: found record 1 malformed"),
        ("no-body", _body(lambda _: b""), "byte 889: found 1 record in 0 bytes"),
        ("bomb", _body(lambda _: _bomb(), 1), "found more than 67108864 bytes after decompression"),
        ("gzip", _body(lambda _: b"text", 1), "found gzip data that cannot be decompressed"),
        ("snappy", _body(lambda _: b"\xff\xff\xff\xff\x0f", 2), "found snappy data that cannot be decompressed"),
        ("unknown-topic", _appended(_UNKNOWN), "offset 10, topic of a metadata record: found topic id"),
        ("unknown-partition", _appended(change(9, isr=(1,))), "offset 10, PartitionChangeRecord: found partition 9"),
        ("partition-range", _appended(partition(2**31 - 1, 1)), "found partition 2147483647, expected 0 to 4194303"),
        ("replica-twice", _appended(partition(2, 1, 1)), "(orders-2) field replicas: found broker 1 twice in [1, 1]"),
        ("no-replica", _appended(partition(2, leader=-1)), "(orders-2) field replicas: found an empty list"),
        ("replica-range", _appended(partition(2, -5)), "(orders-2) field replicas: found -5, expected broker ids"),
        ("leader", _appended(partition(2, 1, 2, leader=9)), "(orders-2) field leader: found broker 9, expected one of"),
        ("isr", _appended(change(0, isr=(9,))), "(orders-0) field isr: found broker 9, expected one of the replicas"),
        ("topic-name", _appended(_SLASH), "found topic name 'a/b', expected 1 to 249 of letters"),
        ("topic-id", _appended(_AGAIN), "offset 10, TopicRecord: found topic other with id"),
        ("config", _appended(_MIN_ISR), "(orders) field config min.insync.replicas: found 'x', expected 1 to"),
        ("feature", _appended(_LEVEL), "feature metadata.version: found level -1, expected 0 or more"),
        ("broker", _appended(registration(77, fenced=1)), "offset 10, broker of a metadata record: found broker 77"),
        (
            "node-id",
            _file("meta.properties", f"{_IDENTITY}node.id=x\n"),
            "meta.properties, node.id: found 'x'",
        ),
        ("identity-bytes", _file("meta.properties", b"\xff"), "meta.properties: found broken UTF-8 (byte 0xff)"),
        (
            "directory-id",
            _file("meta.properties", f"{_IDENTITY}node.id=1\ndirectory.id=z\n"),
            "directory.id: found",
        ),
        ("quorum-epoch", _file("quorum-state", _QUORUM % (-5, "")), "quorum-state: found {"),
        ("quorum-key", _file("quorum-state", _QUORUM % (1, ',"leaderId":2')), "(key 'leaderId' twice in one object)"),
    )
]

_BATCH: Final = (
    "Dumping /d/00000000000000000000.log\nLog starting offset: 0\n"
    "baseOffset: 0 lastOffset: {last} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: {epoch} isTransactional: false isControl: false position: 0 CreateTime: {time} size: 99 "
    "magic: 2 compresscodec: none crc: 4 isvalid: true\n| offset: {offset} CreateTime: 6 keySize: -1 valueSize: 9 "
    "sequence: -1 headerKeys: [] payload: {payload}\n"
)
_FEATURE: Final = '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":25}}'


def _dump(**fields: object) -> str:
    return _BATCH.format(**{"last": 0, "epoch": 1, "time": START_MS, "offset": 0, "payload": _FEATURE, **fields})


_CRASH: Final = 'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Record is corrupt\n'
DUMPS: Final = [
    MalformedFile(name, content, _SHOW, message)
    for name, content, message in (
        ("time.txt", _dump(time="9" * 23), "time.txt:3: found 99999999999999999999999, expected a number of at most"),
        ("epoch.txt", _dump(epoch=2**31), "epoch.txt:3: found 2147483648, expected a number of at most 2147483647"),
        ("last.txt", _dump(last=7), "last.txt:3: found 1 record of offset 0 to 7, expected a record of each offset"),
        ("offset.txt", _dump(offset=5), "offset.txt:4: found offset 5, expected 0, the next offset of the batch"),
        ("crash.txt", _dump() + _CRASH, "expected a complete dump: the tool failed here"),
        ("key.txt", _dump(payload=_FEATURE.replace("25", '25,"featureLevel":26')), "(key 'featureLevel' twice"),
        ("level.txt", _dump(payload=_FEATURE.replace("25", '"25"')), "featureLevel: found '25', expected int16"),
        ("field.txt", _dump(payload=_FEATURE.replace("featureLevel", "level")), "the field is mandatory"),
    )
]
_ANY: Final = _log(lambda _: None)
COMMANDS: Final = [
    MalformedFile("same", _ANY, "kraft compare F F", "found a directory twice"),
    MalformedFile("inside", _ANY, "kraft recover F --out F/new", "in DIR, which is only read"),
    MalformedFile("listeners", _ANY, "kraft recover F --listener A://h:1 --listener a://h:2", "found a name twice"),
    MalformedFile("backward", _ANY, "log show F --from 9 --to 2", "found offset 9, expected one up to --to 2"),
]
