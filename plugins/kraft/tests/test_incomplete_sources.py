"""Directories, files and dumps that lack records: none of them shows that a cluster is empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from kframe_kraft.disk import MetaProperties, SnapshotId, write_properties
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_source

from kframe.cli.app import cli
from kframe.plugin.kraft import LogError, RecordAndVersion, records
from verification.kraft.written_log import LEVEL, WrittenLog, small_cluster, write_snapshot

DATA = Path(__file__).parent / "data"
SEGMENT = f"{0:020}.log"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)])


def no_log(path: Path) -> None:
    write_properties(path, MetaProperties("cluster", 1))


def only_bootstrap(path: Path) -> None:
    no_log(path)
    (path / "bootstrap.checkpoint").write_bytes(b"\0" * 400)


def topics_only(path: Path) -> None:
    no_log(path)
    (path / "orders-0").mkdir()
    (path / "orders-0" / SEGMENT).write_bytes(b"")


def empty_directory(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()


def no_records(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()
    (path / LOG_DIRECTORY / SEGMENT).write_bytes(b"")


def zeros(path: Path) -> None:
    (path / LOG_DIRECTORY).mkdir()
    (path / LOG_DIRECTORY / SEGMENT).write_bytes(bytes(796))


def formatted(path: Path) -> None:
    """As Kafka 4.4 formats a controller."""
    (path / LOG_DIRECTORY).mkdir()
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    write_snapshot(path / LOG_DIRECTORY, SnapshotId(0, 0), feature)


def in_a_directory_below(path: Path) -> None:
    no_log(path)
    small_cluster(path / "d0")


@pytest.mark.parametrize(
    "fill, text",
    [
        (no_log, "no __cluster_metadata-0, expected metadata.log.dir of the node, or without it the first of log.dirs"),
        (only_bootstrap, "found no __cluster_metadata-0, expected metadata.log.dir"),
        (topics_only, "found no __cluster_metadata-0, expected metadata.log.dir"),
        (empty_directory, "found no segment and no snapshot in __cluster_metadata-0"),
        (no_records, "found no record, expected the log of a node"),
        (zeros, "found no record, and 796 bytes without a batch"),
        (formatted, "found no record, expected the log of a node"),
        (in_a_directory_below, "node/d0 has one"),
    ],
)
def test_directory_without_metadata_is_no_empty_cluster(
    tmp_path: Path, fill: Callable[[Path], None], text: str
) -> None:
    node = tmp_path / "node"
    node.mkdir()
    fill(node)
    out = tmp_path / "out"
    for command in (
        ("snapshot", "show", node),
        ("snapshot", "convert", node, out),
        ("log", "show", node),
        ("log", "at", node),
        ("kraft", "recover", node),
    ):
        result = run(*command)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert text in result.stderr
    assert not out.exists()


def test_directory_without_files_of_a_node_names_the_right_directory(tmp_path: Path) -> None:
    """The data of topics, copied without meta.properties."""
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / SEGMENT).write_bytes(b"")
    for command in (("snapshot", "show"), ("log", "show"), ("log", "at")):
        result = run(*command, tmp_path)
        assert (result.exit_code, "metadata.log.dir" in result.stderr) == (2, True)


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_control_records_prove_no_empty_cluster(tmp_path: Path, has_snapshot: bool) -> None:
    log = WrittenLog(tmp_path / "node")
    log.lead(1, 1)
    if has_snapshot:
        write_snapshot(log.log, SnapshotId(1, 1))
    for command in (("snapshot", "show"), ("log", "at")):
        result = run(*command, log.directory)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "found no metadata record, expected the log of a quorum that has a leader" in result.stderr
    assert run("log", "show", log.directory, "--control").exit_code == 0


def test_log_of_a_new_cluster_is_an_empty_cluster(tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "node")
    log.lead(1, 1)
    log.append(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL))
    result = run("snapshot", "show", log.directory, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["partitions"]) == (0, 0)


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", f"{0:020}-{0:010}.checkpoint"])
def test_records_of_formatting_are_no_cluster(tmp_path: Path, name: str) -> None:
    feature = RecordAndVersion(records.FeatureLevelRecord(name="metadata.version", feature_level=LEVEL), 0)
    path = write_snapshot(tmp_path, SnapshotId(0, 0), feature).rename(tmp_path / name)
    with pytest.raises(LogError, match="the records that a node is formatted with"):
        read_source(path)


HEAD = "Dumping /d/00000000000000000000.log\nLog starting offset: 0\n"
CONTROL = (
    "baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 1 isTransactional: false isControl: true position: 0 CreateTime: 5 size: 91 magic: 2 "
    "compresscodec: none crc: 4 isvalid: true\n"
    "| offset: 0 CreateTime: 5 keySize: 4 valueSize: 19 sequence: -1 headerKeys: [] controlType: LEADER_CHANGE(2)\n"
)
BATCH = (
    "baseOffset: 1 lastOffset: 2 count: 2 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: 1 isTransactional: false isControl: false position: 91 CreateTime: 6 size: 99 magic: 2 "
    "compresscodec: none crc: 4 isvalid: true\n"
)
FEATURE = '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"metadata.version","featureLevel":25}}'
TOPIC = '{"type":"TOPIC_RECORD","version":0,"data":{"name":"e","topicId":"sSyAuipHQUSlMiLc2kef4g"}}'


def line(offset: int, payload: str) -> str:
    return f"| offset: {offset} CreateTime: 6 keySize: -1 valueSize: 9 sequence: -1 headerKeys: [] {payload}\n"


@pytest.mark.parametrize(
    "text",
    [
        HEAD + CONTROL + BATCH + line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}"),
        HEAD + CONTROL + BATCH + f"| payload: {FEATURE}\n| payload: {TOPIC}\n",
        HEAD + CONTROL + BATCH + f" payload: {FEATURE}\n payload: {TOPIC}\n",
        'Defaulted container "kafka" out of: kafka\n' + HEAD + CONTROL + BATCH + f"{FEATURE}\n{TOPIC}\n",
        f"{FEATURE}\n{TOPIC}\n",
    ],
    ids=["all", "--skip-record-metadata", "--skip-record-metadata without bars", "noise before", "records only"],
)
def test_dumps_of_all_options_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(text)
    result = run("snapshot", "show", path, "-o", "json")
    assert (result.exit_code, json.loads(result.stdout)["topics"]) == (0, 1), result.output


SKIPPED = "kafka-dump-log --skip-record-metadata prints no control record"
OLDER = "this kafka-dump-log does not print the control record"
ONLY = "the dump has records only"
#: As ``--skip-record-metadata`` prints a control record.
EMPTY_CONTROL = CONTROL[: CONTROL.index("| offset")] + "\n"
LEADER = line(0, 'LeaderChange {"version":0,"leaderId":1,"voters":[{"voterId":1}]}')


@pytest.mark.parametrize(
    "text, expected",
    [
        (HEAD + EMPTY_CONTROL + BATCH + f" payload: {FEATURE}\n payload: {TOPIC}\n",
         [f"quorum.leader unknown ({SKIPPED}): taken as none",
          f"quorum.kraft_version unknown ({SKIPPED}): taken as 0"]),
        (HEAD + CONTROL + BATCH + line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}"),
         [f"quorum.leader unknown ({OLDER}): taken as none"]),
        (HEAD + CONTROL.splitlines()[0] + "\n" + LEADER + BATCH + line(1, f"payload: {FEATURE}")
         + line(2, f"payload: {TOPIC}"), []),
        (f"{FEATURE}\n{TOPIC}\n",
         [f"quorum.leader unknown ({ONLY}): taken as none", f"quorum.kraft_version unknown ({ONLY}): taken as 0",
          f"quorum.epoch unknown ({ONLY}): taken as 0", f"log.offset unknown ({ONLY}): records are counted from 0"]),
    ],
    ids=["--skip-record-metadata", "older tool", "complete", "records only"],
)  # fmt: skip
def test_facts_that_a_dump_lacks_are_assumptions(tmp_path: Path, text: str, expected: list[str]) -> None:
    path, out = tmp_path / "dump.txt", tmp_path / "out"
    path.write_text(text)
    for arguments in (("snapshot", "show", path), ("log", "at", path), ("whatif", "delete", path, "e")):
        result = run(*arguments, "-o", "json")
        assert json.loads(result.stdout)["assumptions"][: len(expected)] == expected, result.output
    if expected:
        subjects = ", ".join(text.partition(" unknown")[0] for text in expected)
        assert f" not in this input: {subjects}" in run("whatif", "delete", path, "e").stdout
        assert f" unknown: {expected[0].partition('(')[2].partition(')')[0]}" in run("log", "show", path).stderr
    assert run("snapshot", "convert", path, out).exit_code == 0
    assert json.loads(run("snapshot", "show", out, "-o", "json").stdout)["assumptions"] == expected


def test_dump_has_kraft_version(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    version = '| offset: 1 CreateTime: 5 keySize: 4 valueSize: 5 sequence: -1 headerKeys: [] KRaftVersion {"version":0,'
    control = CONTROL.replace("lastOffset: 0 count: 1", "lastOffset: 1 count: 2") + version + '"kRaftVersion":1}\n'
    batch = BATCH.replace("baseOffset: 1 lastOffset: 2", "baseOffset: 2 lastOffset: 3")
    path.write_text(HEAD + control + batch + line(2, f"payload: {FEATURE}") + line(3, f"payload: {TOPIC}"))
    summary = json.loads(run("snapshot", "show", path, "-o", "json").stdout)
    assert (summary["features"], summary["offset"]) == ({"kraft.version": 1, "metadata.version": 25}, 3)


@pytest.mark.parametrize(
    "text, where, message",
    [
        (
            line(1, f"payload: {FEATURE}") + line(2, "payload: Error at 2, skipping. Unknown metadata id 28"),
            7,
            "the dump lacks, because kafka-dump-log did not decode it (Error at 2, skipping. Unknown metadata id 28)",
        ),
        (
            f"| payload: {FEATURE}\n| payload: Error at 2, skipping. Can't read version 3 of TopicRecord\n",
            7,
            "expected every record: use kafka-dump-log of the node's release",
        ),
        (
            line(1, "") + line(2, ""),
            5,
            "0 of 2 records of the batch, expected all, in output of kafka-dump-log with --cluster-metadata-decoder",
        ),
        (line(1, "payload: \x01\x02\x03") + line(2, "key: 7 payload: x"), 5, "with --cluster-metadata-decoder"),
        ("", 5, "with --cluster-metadata-decoder"),
        (line(1, f"payload: {FEATURE}"), 5, "1 of 2 records of the batch, expected all, in a complete dump"),
        (line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC[:-4]}"), 5, "1 of 2 records"),
        ("".join(line(offset, f"payload: {FEATURE}") for offset in (1, 2, 3)), 5, "3 of 2 records"),
        (line(1, f"payload: {FEATURE}") * 2, 7, "found offset 1, expected 2, the next offset of the batch"),
        (
            line(1, f"payload: {FEATURE}")
            + line(2, f"payload: {TOPIC}")
            + BATCH.replace("baseOffset: 1 lastOffset: 2", "baseOffset: 3 lastOffset: 4"),
            8,
            "0 of 2 records of the batch",
        ),
        (line(1, f"payload: {FEATURE}") + line(2, f"payload: {TOPIC}") + BATCH[:60], 8, "expected the line of a batch"),
    ],
)
@pytest.mark.parametrize("command", [("snapshot", "show"), ("log", "show")])
def test_dump_without_some_records_is_refused(
    tmp_path: Path, command: tuple[str, str], text: str, where: int, message: str
) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(HEAD + CONTROL + BATCH + text)
    result = run(*command, path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"dump.txt:{where}: " in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    "text, message",
    [
        (HEAD + CONTROL, "found no record"),
        ("Dumping /d/bootstrap.checkpoint\nKRaft bootstrap snapshot\n" + FEATURE, "a node is formatted with"),
        (
            "Dumping /d/00000000000000000003-0000000001.checkpoint\nSnapshot end offset: 3, epoch: 1\n"
            + CONTROL
            + BATCH
            + line(1, f"payload: {FEATURE}")
            + line(2, f"payload: {TOPIC}"),
            "no footer: the dump is cut off",
        ),
    ],
)
def test_dump_that_proves_no_empty_cluster_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(text)
    result = run("snapshot", "show", path)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr


@pytest.mark.parametrize(
    "name, message",
    [
        ("dump-error-at.txt.gz", "dump-error-at.txt:135: found a record that the dump lacks"),
        ("dump-without-decoder.txt", "dump-without-decoder.txt:5: found 0 of 9 records"),
    ],
)
@pytest.mark.parametrize("command", [("snapshot", "show"), ("log", "show"), ("log", "at")])
def test_dumps_of_kafka_that_lack_records_are_refused(command: tuple[str, str], name: str, message: str) -> None:
    result = run(*command, DATA / name)
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr


TOPICS = "Topic: orders\tTopicId: sSyAuipHQUSlMiLc2kef4g\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n"
PARTITIONS = "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
PLAN = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1]}]}'


@pytest.mark.parametrize(
    "content, message",
    [
        (TOPICS + PARTITIONS, "a snapshot in the format describe, which has no log"),
        (PLAN, "a snapshot in the format reassignment, which has no log"),
        ("orders\npayments\n", "a text, expected output of kafka-dump-log with --cluster-metadata-decoder"),
    ],
)
def test_text_of_another_tool_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "topics.txt"
    path.write_text(content)
    for verb in ("show", "at"):
        result = run("log", verb, path)
        assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr
    assert (f"use kframe snapshot show {path}" in result.stderr) == ("no log" in message)
