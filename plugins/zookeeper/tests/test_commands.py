"""``kframe snapshot capture`` and ``kframe controller`` on a real ZooKeeper."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kframe_zookeeper.znodes import paths

from kframe.snapshot import read_snapshot
from kframe.snapshot.facts import ELR_COLUMNS
from kframe.testing.waiting import until
from verification.zookeeper.commands import READY, Start, invoke, kframe, kframe_json
from verification.zookeeper.servers import ServerHandle

EXAMPLE_DUMP = (
    Path(__file__).parents[3] / "examples" / "clusters" / "kafka-3.9.1-six-brokers" / "healthy.zookeeper.jsonl.gz"
)


def epoch_of(client: KazooClient) -> int:
    return int(client.get(paths.CONTROLLER_EPOCH)[0])


def holds(client: KazooClient, number: int, controller_epoch: int) -> bool:
    """Wait until this controller has the role at this epoch."""

    def is_elected() -> bool:
        return bool(client.exists(paths.CONTROLLER)) and epoch_of(client) >= controller_epoch

    if not until(is_elected):
        return False
    controller_id = json.loads(client.get(paths.CONTROLLER)[0])["brokerid"]
    return (controller_id, epoch_of(client)) == (number, controller_epoch)


# -- snapshot capture


def test_capture_equals_the_dump(address: str, tmp_path: Path) -> None:
    report = kframe_json("snapshot", "capture", f"zookeeper://{address}", tmp_path / "out")
    assert (report["schema"], report["consistent"], report["moved"], report["quarantined"]) == (
        "kframe.snapshot-capture/v1",
        True,
        0,
        [],
    )
    captured, dumped = read_snapshot(tmp_path / "out"), read_snapshot(EXAMPLE_DUMP)
    assert captured.topics.names == dumped.topics.names
    assert captured.topics.configs == dumped.topics.configs
    assert captured.topics.topic_ids is not None
    assert dumped.topics.topic_ids is not None
    assert captured.topics.topic_ids.tolist() == dumped.topics.topic_ids.tolist()
    for name, column in dumped.partitions.numbers().items():
        ours = captured.partitions.numbers()[name]
        assert (None if ours is None else ours.tolist()) == (None if column is None else column.tolist()), name
    for name, lists in {**dumped.partitions.lists(), "replicas": dumped.partitions.replicas}.items():
        ours = getattr(captured.partitions, name)
        assert (ours is None, lists is None) == (name in ELR_COLUMNS, name in ELR_COLUMNS), name
        if lists is not None:
            assert (ours.offsets.tolist(), ours.values.tolist()) == (lists.offsets.tolist(), lists.values.tolist()), (
                name
            )
    assert [(broker.broker_id, broker.rack, broker.endpoints) for broker in captured.brokers] == [
        (broker.broker_id, broker.rack, broker.endpoints) for broker in dumped.brokers
    ]


def test_capture_quarantines_malformed_znodes(address: str, client: KazooClient, tmp_path: Path) -> None:
    broken = {
        "/brokers/topics/torn": b'{"partitions":{"0":[1,',
        "/brokers/topics/minus": b'{"version":3,"partitions":{"0":[-1,1]}}',
        "/brokers/ids/9": b"not JSON",
        "/brokers/topics/odd/partitions/0/state": b'{"controller_epoch":1,"leader":1,"leader_epoch":0,"isr":[1,5]}',
        "/brokers/topics/odd/partitions/1/state": b"[]",
        "/config/topics/odd": b'{"version":1,"config":{"min.insync.replicas":"many"}}',
    }
    client.create("/brokers/topics/odd", b'{"version":2,"partitions":{"0":[1,2],"1":[2,1]}}')
    for path, data in broken.items():
        client.create(path, data, makepath=True)
    report = kframe_json("snapshot", "capture", f"zookeeper://{address}", tmp_path / "out")
    assert {entry["path"] for entry in report["quarantined"]} == set(broken)
    assert all(entry["reason"] for entry in report["quarantined"])
    captured = read_snapshot(tmp_path / "out")
    assert captured.capture is not None
    assert set(captured.capture.quarantined) == set(broken)
    assert {"odd", "torn", "minus"} & set(captured.topics.names) == {"odd"}
    output = kframe("controller", "status", "--zookeeper", address).stdout
    accepted = ["/brokers/topics/minus", "/brokers/topics/odd/partitions/0/state", "/config/topics/odd"]
    assert [path for path in broken if f"{path}: " not in output] == accepted, "by a controller, not by a snapshot"


@pytest.mark.parametrize(
    "url, code, message",
    [
        ("zookeeper://{address}/nothing", 2, "the chroot /nothing does not exist"),
        ("etcd://{address}", 2, "no live cluster for the URL scheme 'etcd'"),
        ("zookeeper://{address}:x", 2, "ZooKeeper URL"),
        ("zookeeper://127.0.0.1:1?connection.timeout.ms=300", 1, "error: no session with ZooKeeper at"),
    ],
    ids=["no cluster", "no plugin", "no URL", "no server"],
)
def test_capture_refused(zookeeper: ServerHandle, tmp_path: Path, url: str, code: int, message: str) -> None:
    done = kframe("snapshot", "capture", url.format(address=zookeeper.address), tmp_path / "out")
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


# -- controller run


def test_standby_takes_over_when_the_active_controller_is_stopped(start: Start, client: KazooClient) -> None:
    first = start(1001)
    assert holds(client, 1001, 2)
    second = start(1002)
    assert first.logs(f"{READY} 2")
    assert first.logs("WARN [Controller id=1001] any ZooKeeper client may change")
    assert first.stop() == 0
    assert holds(client, 1002, 3)
    assert first.logs("Resigned: asked to resign")
    assert second.stop(number=signal.SIGINT) == 0
    assert client.exists(paths.CONTROLLER) is None


def test_standby_takes_over_when_the_active_controller_is_killed(start: Start, client: KazooClient) -> None:
    first = start(1001, timeout_ms=6_000)
    assert holds(client, 1001, 2)
    start(1002)
    first.kill()
    assert until(lambda: epoch_of(client) > 2)
    assert holds(client, 1002, 3)


def test_takeover(start: Start, client: KazooClient) -> None:
    first = start(1001)
    assert first.logs(f"{READY} 2")
    second = start(1002, "--takeover")
    assert second.logs(f"{READY} 3")
    assert first.logs("Resigned: our session does not hold the role any more")
    assert second.stop() == 0
    assert holds(client, 1001, 4)


def test_active_controller_and_standby_serve_metrics(start: Start, client: KazooClient) -> None:
    for number, active in ((1001, True), (1002, False)):
        instance = start(number, "--metrics-listen", "0")
        assert instance.logs(f"is a candidate for controller as {number} at ")
        if active:
            assert holds(client, 1001, 2)
        instance.await_ready(active)
        text = instance.page("/metrics")[1]
        assert f"kafka_controller_kafkacontroller_activecontrollercount {int(active)}\n" in text
        assert "transport recording: no request reaches a broker" in instance.log
        assert f"id {number} is above reserved.broker.max.id=1000" in instance.log


def test_logs_have_kafkas_layout(start: Start, client: KazooClient, tmp_path: Path) -> None:
    running = start(1001, "--log-dir", str(tmp_path / "logs"))
    assert holds(client, 1001, 2)
    assert running.stop() == 0
    expected = {
        "controller.log": r"\[\d{4}-\d\d-\d\d [\d:]{8},\d{3}\] INFO \[Controller id=1001\] kframe .* is a candidate.*",
        "state-change.log": r"\[[-0-9 :,]+\] INFO \[Controller id=1001 epoch=2\] .+ \(kframe\.statechange\)",
    }
    for name, pattern in expected.items():
        first = next(line for line in (tmp_path / "logs" / name).read_text().splitlines() if " INFO " in line)
        assert re.fullmatch(pattern, first), first


def test_names_from_zookeeper_never_break_a_log_line(start: Start, client: KazooClient, address: str) -> None:
    unparsed = ["line\u2028break", "\u202eright to left", "a b"]
    for name in unparsed:
        client.create(f"{paths.TOPICS}/{name}", b'{"partitions":{"0":[1]}}')
        client.create(f"{paths.BROKER_IDS}/{name}", b"")
    client.create(paths.PREFERRED_ELECTION, b'{"version":1,"partitions":[{"topic":"a\\nb","partition":0}]}')
    running = start(1001)
    assert running.logs(f"{READY} 2")
    assert running.logs("preferred_replica_election is left out")
    assert running.stop() == 0
    lines = running.log.splitlines()
    assert [line for line in lines if not re.match(r"\[\d{4}-.+\] [A-Z]+ \[.+(id|Id)=1001", line)] == []
    assert [line for line in lines if not line.isprintable()] == []
    assert sum("is left out" in line for line in lines) == 2 * len(unparsed) + 1
    output = kframe("controller", "status", "--zookeeper", address).stdout.split("\n")
    assert [line for line in output if not line.isprintable()] == []


# -- controller status and resign


def test_status_and_resign(address: str, start: Start, client: KazooClient) -> None:
    assert kframe_json("controller", "status", "--zookeeper", address)["controller_id"] is None
    assert kframe("controller", "resign", "--zookeeper", address).returncode == 5
    running = start(1001)
    assert running.logs(f"{READY} 2")
    report = kframe_json("controller", "status", "--zookeeper", address)
    assert {key: report[key] for key in ("schema", "controller_id", "controller_epoch", "brokers", "quarantined")} == {
        "schema": "kframe.controller-status/v1",
        "controller_id": 1001,
        "controller_epoch": 2,
        "brokers": [1, 2, 3, 4, 5, 6],
        "quarantined": [],
    }
    assert "any client may change /brokers/topics" in report["warnings"]
    refused = kframe("controller", "resign", "--zookeeper", address, "--id", 1002)
    assert (refused.returncode, refused.stderr) == (5, "error: broker 1001 is controller, not 1002\n")
    ended = kframe_json("controller", "resign", "--zookeeper", address, "--id", 1001)
    assert (ended["controller_id"], ended["controller_epoch"]) == (1001, 2)
    assert running.logs(f"{READY} 3"), "it stands for election again"


def test_quick_status_reads_no_topics(address: str, client: KazooClient) -> None:
    client.create("/brokers/topics/torn", b'{"partitions":{"0":[1,')
    client.create("/brokers/ids/9", b"not JSON")
    whole = kframe_json("controller", "status", "--zookeeper", address)
    quick = kframe_json("controller", "status", "--zookeeper", address, "--quick")
    assert [entry["path"] for entry in whole["quarantined"]] == ["/brokers/ids/9", "/brokers/topics/torn"]
    assert [entry["path"] for entry in quick["quarantined"]] == ["/brokers/ids/9"]
    assert (whole["quick"], quick["quick"]) == (False, True)
    assert (quick["partitions"], quick["topics"]) == (None, whole["topics"] + 1), "the torn one is a topic to it"
    others = ("controller_id", "controller_epoch", "elected", "cluster_id", "brokers", "warnings")
    assert {key: quick[key] for key in others} == {key: whole[key] for key in others}


# -- configuration


BAD = {
    "a value": (["num.partitions=many"], 1, "num.partitions: found 'many'"),
    "of ZooKeeper": (["# one", "zookeeper.session.timeout.ms=soon"], 2, "zookeeper.session.timeout.ms: found 'soon'"),
    "no place": (["zookeeper.connect=:0:"], 1, "zookeeper.connect: found"),
    "an id": (["", "", "broker.id=-1"], 3, "broker.id: found '-1'"),
    "a protocol": (["inter.broker.protocol.version=9.9"], 1, "inter.broker.protocol.version: found '9.9'"),
    "a file": (
        ["zookeeper.ssl.client.enable=true", "zookeeper.ssl.truststore.location=/nowhere.pem"],
        2,
        "zookeeper.ssl.truststore.location: found a file that cannot be used",
    ),
    "no login": (["zookeeper.set.acl=true"], 1, "zookeeper.set.acl: found true, but neither a login nor a certificate"),
}


@pytest.mark.parametrize("lines, line, message", BAD.values(), ids=BAD)
def test_invalid_configuration_names_file_line_and_key(
    tmp_path: Path, lines: list[str], line: int, message: str
) -> None:
    path = tmp_path / "server.properties"
    given = {line.partition("=")[0] for line in lines}
    rest = [line for line in ("zookeeper.connect=127.0.0.1:1", "broker.id=7") if line.partition("=")[0] not in given]
    path.write_text("\n".join([*lines, *rest]))
    done = invoke("controller", "run", "--config", path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"error: {path}:{line} key {message}"), done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((), "no id for the controller: give --id"),
        (("--id", "1"), "no ZooKeeper address: give --zookeeper"),
        (("--id", "x", "--zookeeper", "127.0.0.1:1"), "option --id key broker.id: found 'x'"),
        (
            ("--id", "1", "--zookeeper", "127.0.0.1:1", "--transport", "pigeon:"),
            "--transport or --server: no transport",
        ),
        (("--id", "1", "--config", "missing.properties"), "missing.properties: found No such file"),
    ],
)
def test_invalid_options(arguments: tuple[str, ...], message: str) -> None:
    done = invoke("controller", "run", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}"), done.stderr


def test_run_without_zookeeper_fails(tmp_path: Path) -> None:
    done = invoke(
        "controller",
        "run",
        "--id",
        1,
        KFRAME_ZOOKEEPER_CONNECT="127.0.0.1:1",
        KFRAME_ZOOKEEPER_CONNECTION_TIMEOUT_MS="300",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "error: no session with ZooKeeper at" in done.stderr
