r"""Reads what ``kafka-topics --describe`` prints, of any release from 0.8.2 to 4.

    Topic: t\tTopicId: ...\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: k=v,k=v
    \tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tAdding Replicas: 3\tRemoving Replicas: ...

Kafka 4 adds ``Elr`` and ``LastKnownElr``, Confluent's tool ``Offline``, which follows from the rest, and ``Observers``.

The labels delimit the fields, since spacing and order vary by release. The output has no epochs, no racks and no list
of brokers. A broker that leads, or is in the ISR of a partition that has a leader, counts as registered; the state of
the others is unknown. (The ISR of a leaderless partition names brokers that were alive once.)
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from kframe.errors import SnapshotError
from kframe.model.arrays import Int32, Ragged
from kframe.model.ids import NO_LEADER
from kframe.model.texts import counted, short_repr
from kframe.ports.progress import Progress, ignore_progress
from kframe.snapshot.assemble import Assembled, Assembly
from kframe.snapshot.checks import INT32_MAX, check_snapshot
from kframe.snapshot.content import distinct_ids, named_brokers
from kframe.snapshot.decode import topic_id_bytes, topic_id_text
from kframe.snapshot.describe_lines import DescribeLines
from kframe.snapshot.facts import (
    OBSERVERS_NOTE,
    BrokerFacts,
    KraftFacts,
    PartitionFacts,
    Source,
    TopicFacts,
    absent_columns,
)
from kframe.snapshot.faults import REFUSE, Faults
from kframe.snapshot.files import InputFile, read_lines
from kframe.snapshot.snapshot import Snapshot

_LABEL: Final = re.compile(
    r"(?:^|\s)(Topic|TopicId|PartitionCount|ReplicationFactor|Configs|MarkedForDeletion|Partition|Leader|Replicas|Isr"
    r"|Adding Replicas|Removing Replicas|Elr|LastKnownElr|Offline|Observers):"
)
#: A comma that ends a config's value is followed by the next config's name. Other commas are part of the value.
_NEXT_CONFIG: Final = re.compile(r",(?=[A-Za-z0-9._-]+=)")
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
#: The labels that only some releases print, and their columns.
_OPTIONAL_LISTS: Final[Mapping[str, str]] = {
    "Adding Replicas": "adding_replicas",
    "Removing Replicas": "removing_replicas",
    "Elr": "elr",
    "LastKnownElr": "last_known_elr",
    "Observers": "observers",
}
#: Printed for a list that the cluster does not report.
_NOT_REPORTED: Final = "N/A"
_PROVENANCE: Final[Mapping[str, str]] = absent_columns(
    "not printed by kafka-topics", "partitions.leader", "partitions.isr"
) | {
    "brokers.registered": "kafka-topics lists no brokers; those that lead or are in a led partition's ISR are live",
    "topics.topic_id": "not printed by kafka-topics before 2.8",
    "topics.configs": "kafka-topics prints broker-wide overrides along with the topic's own",
    "partitions.adding_replicas": "printed since 2.4; no label is taken for none",
    "partitions.removing_replicas": "printed since 2.4; no label is taken for none",
}


def read_describe(path: InputFile, progress: Progress = ignore_progress, faults: Faults = REFUSE) -> Snapshot:
    """Read a whole listing. Raises SnapshotError, also for one of ``--under-min-isr-partitions`` and the like."""
    listing = _Listing(path, faults)
    for number, line in read_lines(path, progress, listing.take_lines):
        if not line.endswith(b"\n"):
            listing.check_last(line, number)
        listing.take(line, number)
    return listing.finish()


class _Listing:
    """The content of the lines read so far."""

    def __init__(self, path: InputFile, faults: Faults) -> None:
        self._path = path
        self._faults = faults
        self._assembly = Assembly(self._location, ("leader",), ("isr", *_OPTIONAL_LISTS.values()))
        self._with_elr = self._without_elr = False
        """Whether the ELR of any partition is reported, and whether that of any is not."""
        self._has_observers = False
        self._invented_ids: dict[str, str] = {}
        """The first topic of each id that is none of Kafka's."""
        self._labels: Collection[str] = ()
        self._topic: tuple[str, int] | None = None
        """Name and number of the topic that was described last."""
        self._refused: SnapshotError | None = None
        self._lines = DescribeLines()
        self._unterminated = False
        self._counts: dict[str, int] = {}
        self._partitions_read: dict[str, int] = {}

    def take_lines(self, block: bytes, start: int, number: int) -> tuple[int, int]:
        """Note the lines of a block that the kernel reads, up to the first that it leaves to ``take``."""
        lines, topic = self._lines, self._topic
        end = lines.read(block, start, "" if topic is None else topic[0])
        line_count, row_count, first = lines.line_count, lines.row_count, 0
        owners: list[tuple[int, int]] = []
        for header in lines.topic_lines(block):
            owners += self._owned(topic, header.rows - first)
            first = header.rows
            topic = self._take_topic_line(block[header.start : header.end], number + header.line)
            if topic is None or topic[0] != header.topic:
                end, line_count, row_count = header.end, header.line + 1, header.rows
                break
        owners += self._owned(topic, row_count - first)
        if row_count:
            self._take_rows(owners, row_count, number)
        return end, line_count

    def take(self, line: bytes, number: int) -> None:
        """Note one line, or its fault."""
        try:
            self._take(line, number)
        except SnapshotError as fault:
            self._take_fault(fault, line)
            self._refused = fault

    def check_last(self, line: bytes, number: int) -> None:
        """Refuse a last line without a line feed unless it has all labels of the partition before it."""
        self._unterminated = True
        labels = _fields(line.decode(errors="replace")).keys()
        if "Partition" not in labels or labels < set(self._labels):
            raise SnapshotError(
                self._location(number), "a last line without an end", "a whole listing (is it truncated?)"
            )

    def _take_fault(self, fault: SnapshotError, line: bytes) -> None:
        """Note an unreadable line, its topic if it names one, and whether it describes a partition.

        One fault covers all partitions of a topic whose own line is missing.
        """
        fields = _fields(line.decode(errors="replace"))
        name, partitions = fields.get("Topic"), 1 if "Partition" in fields else None
        if name is None or name not in self._faults.topics or self._assembly.find(name) is not None:
            self._faults(fault, name, partitions)
        elif partitions is not None:
            self._faults.count_excluded(name, partitions)

    def finish(self) -> Snapshot:
        """The snapshot, checked."""
        if self._refused is not None and not self._counts:
            raise self._refused
        for topic, count in self._counts.items():
            if self._partitions_read[topic] != count and topic not in self._faults.topics:
                actual = f"{counted(self._partitions_read[topic], 'partition')} of topic {topic}"
                expected = f"its PartitionCount of {count} (is it truncated?)"
                self._faults(SnapshotError(str(self._path), actual, expected), topic)
        if self._with_elr and self._without_elr:
            actual = f"the Elr of some partitions, and {_NOT_REPORTED} or none for others"
            self._faults(SnapshotError(str(self._path), actual, "the output of one call of kafka-topics"))
        assembled = self._assembly.finish(self._faults)
        leader, isr = assembled.numbers["leader"], assembled.lists["isr"]
        partitions = PartitionFacts(
            replicas=assembled.replicas,
            leader=leader,
            isr=isr,
            adding_replicas=assembled.lists["adding_replicas"],
            removing_replicas=assembled.lists["removing_replicas"],
            elr=None if self._without_elr else assembled.lists["elr"],
            last_known_elr=None if self._without_elr else assembled.lists["last_known_elr"],
            observers=assembled.lists["observers"] if self._has_observers else None,
        )
        topics = self._topics(assembled)
        provenance = dict(_PROVENANCE)
        for column, known in (("topic_id", topics.topic_ids), ("deleting", topics.deleting)):
            if known is not None:
                del provenance[f"topics.{column}"]
        if self._invented_ids:
            names = ", ".join(list(self._invented_ids.values())[:5])
            provenance["topics.topic_id"] = f"left out where Kafka would not print it: {names}"
        if self._has_observers:
            provenance["partitions.observers"] = OBSERVERS_NOTE
        if self._unterminated:
            provenance["partitions.isr"] = (
                "the last line has no line feed: if the listing was cut, its last list is short"
            )
        source = Source("describe", self._path.name)
        brokers = _brokers(partitions, leader, isr)
        kraft = None if self._without_elr else KraftFacts()
        snapshot = Snapshot(brokers, topics, partitions, source, provenance=provenance, kraft=kraft)
        return check_snapshot(snapshot, assembled.locate, self._faults)

    def _take(self, line: bytes, number: int) -> None:
        where = self._location(number)
        try:
            text = line.decode()
        except UnicodeDecodeError as problem:
            raise SnapshotError(where, f"broken UTF-8 (byte {line[problem.start]:#04x})", "UTF-8") from problem
        if not text.strip():
            return
        labels = [label[1] for label in _LABEL.finditer(text)]
        fields = _fields(text)
        if len(fields) < len(labels) and "Configs" not in fields:  # A config may have a text like a label.
            repeated = next(label for label in labels if labels.count(label) > 1)
            raise SnapshotError(where, f"{repeated}: twice", "each field once")
        if "Topic" not in fields:
            raise SnapshotError(where, short_repr(text.strip()), "a line of kafka-topics --describe")
        if "Partition" in fields:
            self._take_partition(fields, number)
        else:
            self._take_topic(fields, number)

    def _take_topic(self, fields: Mapping[str, str], number: int) -> None:
        where = self._location(number)
        name = fields["Topic"]
        self._counts[name] = _number(_field(fields, "PartitionCount", where), where)
        self._partitions_read[name] = 0
        topic = self._assembly.topic(name, number)
        self._assembly.configs[topic] = _configs(_field(fields, "Configs", where), where)
        if "TopicId" in fields:
            self._take_topic_id(topic, name, fields["TopicId"], where)
        if fields.get("MarkedForDeletion") == "true":
            self._assembly.deleting.add(topic)
        self._topic = name, topic

    def _take_topic_id(self, topic: int, name: str, text: str, where: str) -> None:
        """Note the id of a topic. A text that Kafka prints for no id is unknown: others of its kind have its bytes."""
        topic_id = topic_id_bytes(text, where)
        if topic_id_text(topic_id) == text:
            self._assembly.topic_ids[topic] = topic_id
            return
        if (first := self._invented_ids.setdefault(text, name)) != name:
            raise SnapshotError(
                f"{where} field topic_id", f"topic id {text} of topics {first} and {name}", "another id for each topic"
            )

    def _take_topic_line(self, line: bytes, number: int) -> tuple[str, int] | None:
        """Note the line of a topic. Returns the topic, None if the line is at fault."""
        self._topic = None
        self.take(line, number)
        return self._topic

    def _owned(self, topic: tuple[str, int] | None, rows: int) -> list[tuple[int, int]]:
        """The number of a topic and how many partitions follow its line, which are counted."""
        if topic is None or not rows:
            return []
        self._partitions_read[topic[0]] += rows
        return [(topic[1], rows)]

    def _take_rows(self, owners: list[tuple[int, int]], rows: int, number: int) -> None:
        """Note the partitions that the kernel has read: ``owners`` are their topics and how many are of each."""
        lines = self._lines
        topics, counts = np.array(owners, np.int32).T
        none = np.zeros(rows, np.int32), np.empty(0, np.int32)  # the kernel leaves lines with observers to ``take``
        self._assembly.partitions(
            np.repeat(topics, counts),
            lines.partition[:rows],
            lines.line[:rows] + np.int32(number),
            {"leader": lines.leader[:rows]},
            {**lines.lists(rows), "observers": none},
        )
        self._labels = lines.labels(rows - 1)
        self._with_elr = self._with_elr or lines.is_elr_reported(rows)
        self._without_elr = self._without_elr or lines.is_elr_missing(rows)

    def _take_partition(self, fields: Mapping[str, str], number: int) -> None:
        where = self._location(number)
        name = fields["Topic"]
        topic = self._assembly.find(name)
        if topic is None:
            raise SnapshotError(where, f"a partition of topic {short_repr(name)}", "the topic's own line before it")
        self._partitions_read[name] += 1
        self._labels = fields.keys()
        # The list follows from the rest, but an unknown label after it must not be lost.
        _numbers(fields.get("Offline", "").replace(_NOT_REPORTED, ""), f"{where} field Offline")
        leader = _field(fields, "Leader", where)
        self._assembly.partition(
            topic,
            _number(_field(fields, "Partition", where), f"{where} field Partition"),
            number,
            _numbers(_field(fields, "Replicas", where), f"{where} field Replicas"),
            leader=NO_LEADER if leader in ("none", "-1") else _number(leader, f"{where} field Leader"),
            isr=_numbers(_field(fields, "Isr", where), f"{where} field Isr"),
            **{
                column: _numbers(fields.get(label, "").replace(_NOT_REPORTED, ""), f"{where} field {label}")
                for label, column in _OPTIONAL_LISTS.items()
            },
        )
        has_elr = fields.get("Elr", _NOT_REPORTED) != _NOT_REPORTED
        self._with_elr, self._without_elr = self._with_elr or has_elr, self._without_elr or not has_elr
        if fields.get("Observers"):
            self._has_observers = True

    def _topics(self, assembled: Assembled) -> TopicFacts:
        """The topic table without the columns that this release of kafka-topics does not print."""
        topics = assembled.topics
        topic_ids = topics.topic_ids if self._assembly.topic_ids else None
        deleting = topics.deleting if self._assembly.deleting else None
        return TopicFacts(topics.names, topics.partition_counts, topic_ids, deleting, topics.configs)

    def _location(self, number: int) -> str:
        return f"{self._path}:{number}"


def _brokers(partitions: PartitionFacts, leader: Int32, isr: Ragged) -> tuple[BrokerFacts, ...]:
    """Every broker that is named. Registered are those that lead, or are in the ISR of a partition that is led."""
    led = leader >= 0
    live = {*distinct_ids(leader[led]).tolist(), *distinct_ids(isr.values[np.repeat(led, isr.counts)]).tolist()}
    ids = named_brokers(partitions).tolist()
    return tuple(BrokerFacts(broker_id, True if broker_id in live else None) for broker_id in ids)


def _fields(text: str) -> dict[str, str]:
    labels = list(_LABEL.finditer(text))
    starts = [label.start() for label in labels] + [len(text)]
    return {label[1]: text[label.end() : end].strip() for label, end in zip(labels, starts[1:], strict=True)}


def _field(fields: Mapping[str, str], label: str, where: str) -> str:
    if label not in fields:
        raise SnapshotError(where, f"no {label}:", "every field of kafka-topics --describe")
    return fields[label]


def _number(text: str, where: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > INT32_MAX:
        raise SnapshotError(where, short_repr(text), f"a number from 0 to {INT32_MAX}")
    return int(text)


def _numbers(text: str, where: str) -> list[int]:
    return [_number(number.strip(), where) for number in text.split(",")] if text else []


def _configs(text: str, where: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in _NEXT_CONFIG.split(text)] if text else []
    configs: dict[str, str] = {}
    for name, equals, value in pairs:
        if not equals or not name:
            raise SnapshotError(f"{where} field Configs", short_repr(text), "name=value,name=value")
        if name in configs:
            raise SnapshotError(f"{where} field Configs", f"{name} twice", "each config once")
        configs[name] = value
    return configs
