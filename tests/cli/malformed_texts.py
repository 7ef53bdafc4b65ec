"""Malformed snapshots, plans, maps and saved runs: the commands that read them, and the text of the error.

Each row has a file, its content, and a part of the error. A content is text, bytes, or a function that makes the file.
"""

from __future__ import annotations

import bz2
import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from kframe.snapshot import read_snapshot, write_snapshot
from tests.cli.running import HEALTHY, kframe
from tests.snapshot.samples import DESCRIBE, assignment, dump, dump_text, kcat, registration, znode

Content: TypeAlias = str | bytes | Callable[[Path], object]


class MalformedFile(NamedTuple):
    """A file, the command that reads it (``F`` is the file), and a part of its error."""

    name: str
    content: Content
    line: str
    message: str


def _rows(line: str, rows: Mapping[str, tuple[Content, str]]) -> list[MalformedFile]:
    return [MalformedFile(name, content, line, message) for name, (content, message) in rows.items()]


def _listing(old: str, new: str) -> str:
    assert old in DESCRIBE
    return DESCRIBE.replace(old, new, 1)


LISTINGS: Final = _rows(
    "snapshot show F",
    {
        "isr-twice.txt": (_listing("Isr: 2,3", "Isr: 2,2"), ":3 (t-1) field isr: found broker 2 twice in [2, 2]"),
        "leader-twice.txt": (
            _listing("Leader: 1", "Leader: 1\tLeader: 2"),
            ":2: found Leader: twice, expected each field",
        ),
        "elr-of-some.txt": (
            _listing("Elr: N/A", "Elr: 3"),
            "found the Elr of some partitions, and N/A or none for others",
        ),
        "more-than-counted.txt": (_listing("Count: 2", "Count: 1"), "found 2 partitions of topic t, expected its"),
        "cut-in-a-label.txt": (_listing("\tReplicas: 1,2,3\tIsr: 1,2,3", "\tRepl"), ":2: found no Replicas:"),
        "nul.txt": (_listing("Leader: 1", "Leader: 1\0"), ":2 field Leader: found '1\\x00', expected a number"),
        "carriage-returns.txt": (DESCRIBE.replace("\n", "\r"), ":1: found a partition of topic 't'"),
        "observer-outside.txt": (_listing("Isr: 2,3", "Isr: 2,3\tObservers: 9"), "field observers: found broker 9"),
        "min-isr.txt": (_listing("replicas=2", "replicas=2147483648"), "found '2147483648', expected 1 to 2147483647"),
        "config-twice.txt": (
            _listing("Configs: ", "Configs: min.insync.replicas=1,"),
            "field Configs: found min.insync.replicas twice",
        ),
        "two-marks.txt": ("\ufeff\ufeff" + DESCRIBE, "found a file that starts with '\\ufeffTopic"),
        "cut.utf16.txt": (DESCRIBE.encode("utf-16")[:-1], "found broken UTF-16 (truncated data)"),
        "brackets.txt": (_listing("Replicas: 2,3,1", "Replicas: [2,3,1]"), ":3 field Replicas: found '[2'"),
        "partitions-only.txt": (DESCRIBE.partition("\n")[2], "expected the topic's own line"),
        "unknown-label.txt": (_listing("Isr: 2,3", "Isr: 2,3\tMood: good"), ":3 field Isr: found '3\\tMood: good'"),
        "groups.txt": (
            "\nGROUP TOPIC PARTITION CURRENT-OFFSET\ng t 0 5\n",
            "found a file that starts with 'GROUP TOPIC",
        ),
        "topics.txt.bz2": (bz2.compress(DESCRIBE.encode()), "found a file that starts with 'BZh91AY"),
        # Without the time, which Python may print in other quotes.
        "twice.txt.gz": (
            gzip.compress(gzip.compress(DESCRIBE.encode(), mtime=0), mtime=0),
            "found a file that starts with '\\x1f\\x8b",
        ),
        "trailing.txt.gz": (
            gzip.compress(DESCRIBE.encode()) + b"text",
            "found a damaged gzip file (Not a gzipped file",
        ),
    },
)

_KCAT: Final = json.dumps(kcat())
METADATA: Final = _rows(
    "snapshot show F",
    {
        "topics-twice.json": (_KCAT[:-1] + ', "topics": []}', "found key 'topics' twice in one object"),
        "leader-twice.json": (
            _KCAT.replace('"leader": 1', '"leader": 1, "leader": 2'),
            "found key 'leader' twice in one object",
        ),
        "two-documents.json": (f"{_KCAT}\n{_KCAT}", "trailing characters"),
        "mark-inside.json": (_KCAT.replace('"topics"', '\ufeff"topics"'), "found malformed JSON"),
        "controller.json": (json.dumps(kcat(controllerid=-5)), "field controllerid: found -5, expected int >= -1"),
        "huge.json": (json.dumps(kcat(controllerid=10**30)), "found 1000000000000000000000000000000, expected int <="),
        "half-surrogate.json": (_KCAT.replace('"t"', '"\\ud800"'), "surrogate pair"),
    },
)


def _line(node: dict[str, Any]) -> str:
    return f"{json.dumps(node)}\n"


def _dump(old: str, new: str) -> str:
    text = dump_text(dump())
    assert old in text
    return text.replace(old, new, 1)


_CONTROLLER: Final = znode("/controller", {"version": 2, "brokerid": 1})
_CONFIG: Final = znode("/config/topics/t", {"version": 1, "config": {"min.insync.replicas": "1"}})
_CLUSTER: Final = znode("/cluster/id", {"version": "1", "id": "other"})
_REGISTRATION: Final = registration(1)
_RACKS: Final = {**_REGISTRATION, "data": _REGISTRATION["data"][:-1] + ', "rack": "b"}'}
_TWO_VALUES: Final = '{"version":1,"config":{"min.insync.replicas":"1","min.insync.replicas":"2"}}'
DUMPS: Final = _rows(
    "snapshot show F",
    {
        "controller-twice": (
            dump_text(dump()) + _line(_CONTROLLER),
            ":15 data of /controller: found /controller again",
        ),
        "config-twice": (
            dump_text(dump()) + _line(_CONFIG),
            ":15 data of /config/topics/t: found /config/topics/t again",
        ),
        "cluster-id-twice": (dump_text(dump()) + _line(_CLUSTER), ":15 data of /cluster/id: found /cluster/id again"),
        "config-key-twice": (
            dump_text(dump(znode("/config/topics/t", _TWO_VALUES))),
            "key 'min.insync.replicas' twice",
        ),
        "leader-key-twice": (
            _dump('{\\"version\\": 1, \\"leader\\": 1', '{\\"leader\\": 2, \\"leader\\": 1'),
            "partitions/0/state: found key 'leader' twice in one object",
        ),
        "path-twice": (_dump('"path": "/brokers/ids/1"', '"path": "/x", "path": "/brokers/ids/1"'), ":5: found key"),
        "rack-twice": (dump_text(dump(_RACKS)), "data of /brokers/ids/1: found key 'rack' twice"),
        "relative-path": (dump_text(dump(znode("brokers/ids/4"))), ":15 field path: found 'brokers/ids/4'"),
        "full-width": (dump_text(dump(assignment("t", {"\uff10": [1]}))), "partitions key: found str"),  # type: ignore[dict-item]
        "cluster-id": (dump_text(dump(znode("/cluster/id", {"id": 5}))), "data of /cluster/id field id: found 5"),
        "nul-line": (dump_text(dump()).replace("\n", "\n\0\n", 1), ":2: found malformed JSON"),
        "czxid": (_dump('"czxid": 101', '"czxid": -1'), ":5 field czxid: found -1, expected int >= 0"),
        "overlong": (dump_text(dump()).encode().replace(b"a-cluster", b"a\xc0\xaf"), "found broken UTF-8 (byte 0xc0)"),
        "two-dumps": (dump_text(dump()) * 2, ":19 data of /brokers/ids/1: found broker id 1 again"),
    },
)


def _directory(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """A snapshot directory with a change."""

    def make(path: Path) -> None:
        write_snapshot(read_snapshot(HEALTHY), path)
        change(path)

    return make


def _manifest(**fields: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        manifest = path / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | fields))

    return _directory(change)


def _repeat_key(path: Path) -> None:
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().rstrip()[:-1] + ', "cluster_id": "other"}')


def _pipe(path: Path) -> None:
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")


def _link(path: Path) -> None:
    (path / "topics.parquet").unlink()
    (path / "topics.parquet").symlink_to("topics.parquet")


DIRECTORIES: Final = _rows(
    "snapshot show F",
    {
        "repeated-key": (_directory(_repeat_key), "manifest.json: found key 'cluster_id' twice in one object"),
        "mode": (_manifest(mode="raft"), "manifest.json field mode: found 'raft', expected a value of the schema"),
        "controllers": (
            _manifest(controllers=[1]),
            "manifest.json field controllers: found 1 with a replica in sync of",
        ),
        "pipe": (_directory(_pipe), "manifest.json: found a named pipe, expected a file or a directory"),
        "link": (_directory(_link), "topics.parquet: found Too many levels of symbolic links"),
    },
)


def _plan(**fields: object) -> str:
    entry = {"topic": "__consumer_offsets", "partition": 0, "replicas": [3, 2, 1], **fields}
    return json.dumps({"version": 1, "partitions": [entry]})


_ROLLBACK: Final = "Save this to use as the --reassignment-json-file option during rollback"
PLANS: Final = _rows(
    "whatif reassign SNAPSHOT F",
    {
        "object.json": ('{"version":1,"partitions":{}}', "field partitions: found {}, expected array"),
        "directories.json": (_plan(log_dirs="any"), "field partitions[0].log_dirs: found 'any', expected array"),
        "no-directories.json": (_plan(log_dirs=[]), "found another number of log directories than of replicas"),
        "observers.json": (
            _plan(observers=[9]),
            "found observers of partition __consumer_offsets-0 that are not its last",
        ),
        "throttle.json": ('{"version":1,"partitions":[],"throttle":5}', "found unknown field throttle"),
        "version.json": ('{"version":"1","partitions":[]}', "field version: found '1', expected int"),
        "two-plans.json": (_plan() * 2, "trailing characters"),
        "mark.json": (_plan().replace('{"topic"', '\ufeff{"topic"'), "found malformed JSON"),
        "latin.json": (
            _plan(topic="caf\xe9").encode("latin-1").replace(b"\\u00e9", b"\xe9"),
            "broken UTF-8 (byte 0xe9)",
        ),
        "nan.json": (_plan(replicas=[float("nan")]), "found malformed JSON"),
        "topics-to-move.json": ('{"version":1,"topics":[{"topic":"t"}]}', "found unknown field topics"),
        "election.json": ('{"partitions":[{"topic":"t","partition":0}]}', 'partitions[0]: missing field "replicas"'),
        "offsets.json": (_plan(offset=5), "field partitions[0]: found unknown field offset"),
        "nested.json": (_plan(replicas=[[1]]), "field partitions[0].replicas[0]: found [1], expected int"),
        "stamp.json": ('{"partitions":[],"kframe":{"cluster_id":5}}', "field kframe.cluster_id: found 5, expected str"),
        "loop.json": (lambda path: path.symlink_to(path), "found Too many levels of symbolic links"),
        "rollback.txt": (
            f"Current partition replica assignment\n\n{_plan()}\n\n{_ROLLBACK}\nError: nope\n",
            ":6: found 'Error: nope",
        ),
    },
)

MAPS: Final = _rows(
    "plan generate SNAPSHOT --fix-racks --rack-map F",
    {
        "empty.csv": ("", "found an empty file, expected a rack map"),
        "no-header.csv": ("1,a\n2,b\n", ":1: found '1,a', expected the header broker,rack"),
        "open-quote.csv": ('broker,rack\n1,"a\n', ":2: found malformed CSV (unexpected end of data)"),
        "carriage-returns.csv": ("broker,rack\r1,a\r", ":1: found malformed CSV"),
        "nul.csv": ("broker,rack\n1,a\0\n", ":2: found rack 'a\\x00' of broker 1, expected a name of at most 1000"),
        "long.csv": (f"broker,rack\n1,{'a' * 1001}\n", "of broker 1, expected a name of at most 1000 printable"),
        "full-width.csv": ("broker,rack\n\uff11,a\n", ":2: found broker '\uff11', expected a broker id"),
        "latin.csv": (b"broker,rack\n1,\xe9\n", "found broken UTF-8 (byte 0xe9)"),
        "zone.json": ('[{"broker":1,"rack":"a","zone":"z"}]', "[0]: found the keys broker, rack, zone"),
    },
)


def _log_dirs(name: str, size: int) -> str:
    partition = {"partition": name, "size": size, "offsetLag": 0, "isFuture": False}
    directory = {"logDir": "/d", "error": None, "partitions": [partition]}
    return json.dumps({"version": 1, "brokers": [{"broker": 1, "logDirs": [directory]}]})


WEIGHTS: Final = _rows(
    "plan generate SNAPSHOT --rebalance --weights F",
    {
        "empty.csv": ("\n", "found an empty file, expected sizes of partitions"),
        "negative.csv": ("topic,partition,bytes\nt,0,-5\n", ":2: found '0,-5', expected a partition and bytes"),
        "nan.csv": ("topic,partition,bytes\nt,0,NaN\n", ":2: found '0,NaN'"),
        "large.csv": ("topic,partition,bytes\nt,0,9223372036854775808\n", ":2: found bytes 9223372036854775808"),
        "column-twice.csv": ("topic,partition,bytes,bytes\n", ":1: found 'topic,partition,bytes,bytes'"),
        "semicolons.csv": ("topic;partition;bytes\nt;0;5\n", ":1: found 'topic;partition;bytes'"),
        "unit.csv": ("topic,partition,bytes\nt,0,5MB\n", ":2: found '0,5MB'"),
        "open-quote.csv": (
            'topic,partition,bytes\nt,0,5\n"t,1,5\n',
            ":3: found malformed CSV (unexpected end of data)",
        ),
        "text.json": ('[{"topic":"t","partition":0,"bytes":"5"}]', "field [0].bytes: found '5', expected int"),
        "magic.parquet": (b"PAR1xxxxPAR1", "expected columns topic, partition and bytes"),
        "negative-size.txt": (_log_dirs("t-0", -1), "logDirs[0].partitions[0].size: found -1, expected int >= 0"),
        "no-number.txt": (_log_dirs("t", 1), "found partition 't', expected topic-partition"),
    },
)


def _run(change: Callable[[dict[str, Any]], str]) -> Callable[[Path], None]:
    """A saved run of the simulator with a change."""

    def make(path: Path) -> None:
        base = path.with_name("run.base")
        if not base.exists():
            assert kframe("sim", "replay", 1, "--write", base).exit_code == 0
        path.write_text(change(json.loads(base.read_text())))

    return make


_PART: Final = {"schema": "kframe.sim-part/v1", "build": "b", "first_seed": 1, "last_seed": 2, "failed_seeds": 0}
RUNS: Final = [
    *_rows(
        "sim replay F",
        {
            "seed.json": (
                _run(lambda run: json.dumps(run | {"seed": -1})),
                "field seed: found -1, expected 1, the seed",
            ),
            "later.json": (_run(lambda run: json.dumps(run | {"schema": "kframe.sim-run/v9"})), "'kframe.sim-run/v9'"),
            "key-twice.json": (_run(lambda run: json.dumps(run)[:-1] + ', "seed": 2}'), "found key 'seed' twice"),
            "action.json": (_run(lambda run: json.dumps(run | {"plan": [{"at_ms": 1}]})), "field plan[0]: found"),
            "deep.json": ('{"x":' + "[" * 100_000, "found JSON nested too deep"),
        },
    ),
    *_rows(
        "sim total F",
        {
            "negative.jsonl": (
                json.dumps(_PART | {"first_seed": -1}),
                ":1 field first_seed: found -1, expected int >= 0",
            ),
            "unknown.jsonl": (json.dumps(_PART | {"mood": 1}), ":1: found unknown field mood"),
            "backward.jsonl": (
                json.dumps(_PART | {"first_seed": 3}),
                ":1 field last_seed: found 2, expected 3 or more",
            ),
        },
    ),
    *_rows("sim run --seeds 1 --keep F", {"keep": ("text", "--keep F: found a file, expected a directory")}),
]

_SCENARIO: Final = "schema: kframe.scenario/v1\nname: x\nbrokers: [1]\ntopics: []\nsteps: [{elect: {}}]\n"
SCENARIOS: Final = _rows(
    "scenario run F",
    {
        "nul.yaml": (f"{_SCENARIO}\0", "found character U+0000, expected characters that YAML permits"),
        "self.yaml": (_SCENARIO.replace("[1]", "&a [*a]"), "brokers[0]"),
        "alias.yaml": (_SCENARIO.replace("[1]", "*nosuch"), ":3: found undefined alias"),
        "tag.yaml": (
            _SCENARIO.replace("name: x", "name: !!python/name:os.system"),
            "could not determine a constructor",
        ),
        "documents.yaml": (f"{_SCENARIO}---\n{_SCENARIO}", ":6: found another document, expected YAML"),
    },
)

PROPERTIES: Final = _rows(
    "controller run --transport recording: --config F",
    {
        "id.properties": ("zookeeper.connect=a:1\nbroker.id=x\n", ":2 key broker.id: found 'x', expected a number"),
        "timeout.properties": (
            "zookeeper.connect=a:1\nbroker.id=5\nzookeeper.session.timeout.ms=6s\n",
            ":3 key zookeeper.session.timeout.ms",
        ),
        "connect.properties": ("zookeeper.connect=a:x\nbroker.id=5\n", ":1 key zookeeper.connect: found 'a:x'"),
    },
)


def make(row: MalformedFile, path: Path) -> None:
    """Make the file of a row."""
    content = row.content
    if isinstance(content, str):
        path.write_bytes(content.encode())
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)
