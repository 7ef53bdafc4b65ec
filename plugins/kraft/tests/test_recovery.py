"""``kframe kraft``: comparison of replicas' logs, and the copy of a log for a quorum of one voter."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kframe_kraft.commands.kraft import group
from kframe_kraft.disk import (
    MetaProperties,
    SnapshotId,
    read_history,
    read_properties,
    read_quorum_state,
    write_properties,
)
from kframe_kraft.sources.detection import LOG_DIRECTORY
from kframe_kraft.sources.paths import read_image

from verification.kraft.written_log import (
    WrittenLog,
    change,
    register,
    registration,
    small_cluster,
    write_snapshot,
)

SEGMENT = f"{LOG_DIRECTORY}/{0:020}.log"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [*map(str, arguments)])


def document(*arguments: object, exit_code: int = 0) -> Any:
    result = run(*arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def replica(root: Path, node_id: int) -> WrittenLog:
    """A replica of three; all replicas have the same first 9 records."""
    return small_cluster(root / str(node_id), node_id=node_id, voters=(1, 2, 3))


def identical(root: Path) -> None:
    for node_id in (1, 2, 3):
        replica(root, node_id)


def shorter_log(root: Path) -> None:
    for node_id in (1, 2, 3):
        log = replica(root, node_id)
        if node_id != 3:
            log.append(change(0, isr=(1, 2)))


def stale_tail(root: Path) -> None:
    """Node 1 led epoch 1 and wrote a record that no other node has fetched; epoch 2 went on without it."""
    replica(root, 1).append(change(0, isr=(1, 2)))
    for node_id in (2, 3):
        log = replica(root, node_id)
        log.lead(2, 2)
        log.append(change(0, isr=(1, 3)))


def other_record(root: Path) -> None:
    for node_id in (1, 2, 3):
        replica(root, node_id).append(change(0, isr=(1, 2) if node_id == 3 else (1, 3)))


@pytest.mark.parametrize(
    "fill, states, differences, can_lead, committed, exit_code",
    [
        (identical, ["reference", "equal", "equal"], [None] * 3, [True] * 3, 9, 0),
        (shorter_log, ["reference", "equal", "behind"], [None] * 3, [True, True, False], 10, 0),
        (stale_tail, ["stale tail", "reference", "equal"], [9, None, None], [False, True, True], 11, 0),
        (other_record, ["reference", "equal", "diverged"], [None, None, 9], [True, True, False], 10, 3),
    ],
)
def test_compare(
    tmp_path: Path,
    fill: Callable[[Path], None],
    states: list[str],
    differences: list[int | None],
    can_lead: list[bool],
    committed: int,
    exit_code: int,
) -> None:
    fill(tmp_path)
    rows = document("compare", *(tmp_path / str(node_id) for node_id in (1, 2, 3)), exit_code=exit_code)["rows"]
    assert [row["state"] for row in rows] == states
    assert [row["first_difference"] for row in rows] == differences
    assert [row["can_lead"] for row in rows] == can_lead
    assert {row["committed_at_least"] for row in rows} == {committed}


@pytest.mark.parametrize("part", ["record", "snapshot", "quorum-state", "meta.properties", "first segment"])
def test_damaged_replica_is_named_and_the_others_are_compared(tmp_path: Path, part: str) -> None:
    shorter_log(tmp_path)
    log = tmp_path / "2" / LOG_DIRECTORY
    damage_replica(tmp_path / "2", part)
    result = run("compare", *(tmp_path / str(node_id) for node_id in (1, 2, 3)), "-o", "json")
    assert result.exit_code == 3, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["state"] for row in rows] == ["reference", "damaged", "behind"]
    assert [row["can_lead"] for row in rows] == [True, False, None]
    assert [row["committed_at_least"] for row in rows] == [9, 9, 9]
    assert (rows[1]["end"], rows[1]["torn_bytes"]) == (None, None)
    assert result.stderr == f"{tmp_path / '2'} is damaged, and is not compared: {rows[1]['detail']}\n"
    names = {"record": f"{0:020}.log, byte 96", "snapshot": f"{5:020}-{1:010}.checkpoint", "first segment": str(log)}
    assert names.get(part, part) in rows[1]["detail"]


def damage_replica(directory: Path, part: str) -> None:
    log = directory / LOG_DIRECTORY
    if part == "record":
        data = bytearray((log / f"{0:020}.log").read_bytes())
        data[160] ^= 1
        (log / f"{0:020}.log").write_bytes(data)
    elif part == "snapshot":
        path = write_snapshot(log, SnapshotId(5, 1))
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:-1])
    elif part == "quorum-state":
        (log / "quorum-state").write_text("{")
    elif part == "meta.properties":
        (directory / "meta.properties").write_text("version=1\n")
    else:
        (log / f"{0:020}.log").rename(log / f"{4:020}.log")


def test_compare_without_any_undamaged_log(tmp_path: Path) -> None:
    identical(tmp_path)
    for node_id in (1, 2):
        damage_replica(tmp_path / str(node_id), "record")
    rows = document("compare", tmp_path / "1", tmp_path / "2", exit_code=3)["rows"]
    assert [(row["state"], row["committed_at_least"]) for row in rows] == [("damaged", None)] * 2


def test_compare_names_logs_of_other_clusters(tmp_path: Path) -> None:
    """The log of the other cluster is the longest."""
    identical(tmp_path)
    longer = replica(tmp_path / "more", 3)
    longer.append(change(0, isr=(1, 2)))
    (tmp_path / "3" / SEGMENT).write_bytes(longer.data)
    write_properties(tmp_path / "3", MetaProperties("other", 3))
    rows = document("compare", *(tmp_path / str(node_id) for node_id in (1, 2, 3)), exit_code=3)["rows"]
    assert [row["state"] for row in rows] == ["reference", "equal", "diverged"]
    assert [row["cluster_id"] for row in rows] == ["cluster", "cluster", "other"]
    assert (rows[2]["detail"], rows[2]["can_lead"]) == ("cluster other here, cluster in the reference", False)


def test_empty_log_is_behind(tmp_path: Path) -> None:
    """A replaced disk, and a disk that lost all blocks of the file."""
    identical(tmp_path)
    for node_id, content in ((2, b""), (3, bytes(998))):
        (tmp_path / str(node_id) / SEGMENT).write_bytes(content)
    rows = document("compare", *(tmp_path / str(node_id) for node_id in (1, 2, 3)))["rows"]
    assert [(row["state"], row["end"], row["torn_bytes"]) for row in rows[1:]] == [("behind", 0, 0), ("behind", 0, 998)]
    assert rows[2]["detail"].startswith("998 bytes without a batch at the end: ")


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("node_id", [2, 7])
def test_recover_from_a_brokers_copy(tmp_path: Path, kraft_version: int, node_id: int) -> None:
    """Node 7 is a broker, and the only one whose disk is left. Voter 2 returns, or node 7 becomes a controller."""
    log = small_cluster(tmp_path / "7", node_id=7, voters=(1, 2, 3), kraft_version=kraft_version)
    log.append(register(7))
    log.quorum(leader_epoch=1, leader_id=1, data_version=kraft_version)
    refused = run("recover", log.directory)
    assert (refused.exit_code, refused.output.count("\n")) == (2, 1)
    assert (
        "the directory of node 7, which is no voter, expected that of a voter (1, 2, 3), or --node-id" in refused.output
    )
    out, options = tmp_path / "new", ["--node-id", node_id]
    if node_id == 7:
        options += ["--listener", "CONTROLLER://host:9093"]
    written = document("recover", log.directory, *options, "--out", out)
    assert (written["node_id"], written["source_node_id"], written["former_voters"]) == (node_id, 7, [1, 2, 3])
    assert any("process.roles=broker,controller" in risk for risk in written["risks"]) == (node_id == 7)
    assert any(f"records from offset {log.offset} on" in risk for risk in written["risks"])
    history, properties = read_history(out / LOG_DIRECTORY), read_properties(out)
    assert (history.voters, properties.node_id, properties.cluster_id) == ((node_id,), node_id, "cluster")
    assert (properties.directory_id == read_properties(log.directory).directory_id) == (node_id == 7)
    assert read_image(out).metadata.name(0) == "orders-0"
    if kraft_version:
        voters = read_image(out).voters_record
        assert voters is not None
        assert [voter.voter_directory_id for voter in voters.voters] == [properties.directory_id]


def test_compare_with_missing_replicas_leaves_can_lead_null(tmp_path: Path) -> None:
    shorter_log(tmp_path)
    rows = document("compare", tmp_path / "1", tmp_path / "3")["rows"]
    assert [(row["state"], row["can_lead"]) for row in rows] == [("reference", True), ("behind", None)]


def content(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kraft_version", [0, 1])
def test_recover_writes_a_copy_with_a_single_voter(tmp_path: Path, kraft_version: int) -> None:
    log = small_cluster(tmp_path / "2", node_id=2, voters=(1, 2, 3), kraft_version=kraft_version)
    log.append(change(0, leader=2, isr=(2, 3)), registration(1, fenced=1))
    log.quorum(leader_epoch=4, leader_id=1, data_version=kraft_version)
    before = content(log.directory)
    plan = document("recover", log.directory)
    assert content(tmp_path) == {f"2/{name}": data for name, data in before.items()}
    assert (plan["written"], plan["new_epoch"], plan["former_voters"]) == (None, 5, [1, 2, 3])
    out = tmp_path / "new"
    written = document("recover", log.directory, "--out", out)
    assert (written["written"], written["partitions"], written["brokers"]) == (str(out), 2, 3)
    assert content(log.directory) == before
    history = read_history(out / LOG_DIRECTORY)
    assert (history.voters, history.committed.exact) == ((2,), True)
    assert (history.log.last_epoch, history.log.end) == (5, log.offset + 1 + 2 * kraft_version)
    assert (out / SEGMENT).read_bytes().startswith((log.directory / SEGMENT).read_bytes())
    state = read_quorum_state(out / LOG_DIRECTORY)
    assert state is not None
    assert (state.leader_epoch, state.leader_id, state.voted_id) == (5, -1, -1)
    assert state.voters == (() if kraft_version else (2,))
    assert read_properties(out) == read_properties(log.directory)
    assert read_image(out).metadata.name(0) == "orders-0"
    epochs = (out / LOG_DIRECTORY / "leader-epoch-checkpoint").read_text()
    assert epochs == f"0\n2\n1 0\n5 {log.offset}\n"


@pytest.mark.parametrize(
    "state, risk",
    [
        ({"leader_epoch": 1, "leader_id": 2}, "The node led epoch 1: all records that it committed are here."),
        ({"leader_epoch": 1, "leader_id": 1}, "The node did not lead epoch 1: records from offset 9 on"),
        ({"leader_epoch": 4, "leader_id": 1}, "The node knows of epoch 4, but its log ends in epoch 1"),
    ],
)
def test_recover_reports_possible_data_loss(tmp_path: Path, state: dict[str, int], risk: str) -> None:
    log = replica(tmp_path, 2)
    log.quorum(**state)
    risks = document("recover", log.directory)["risks"]
    assert any(text.startswith(risk) for text in risks), risks
    assert "Records from offset 0 to 8 may not have been committed. The copy commits them." in risks


def test_recover_cuts_a_torn_tail(tmp_path: Path) -> None:
    log = replica(tmp_path, 2)
    with (log.directory / SEGMENT).open("ab") as file:
        file.write(b"\0" * 30)
    assert any(
        text.startswith("The copy lacks 30 bytes after the last complete batch")
        for text in document("recover", log.directory)["risks"]
    )
    document("recover", log.directory, "--out", tmp_path / "new")
    assert read_history(tmp_path / "new" / LOG_DIRECTORY).log.torn_bytes == 0


@pytest.mark.parametrize("problem", ["existing", "other node", "damaged", "no directory id"])
def test_recover_refuses_invalid_input(tmp_path: Path, problem: str) -> None:
    out = tmp_path / "new"
    node_id = 7 if problem == "other node" else 2
    log = small_cluster(tmp_path / "2", node_id=node_id, voters=(1, 2, 3), kraft_version=1)
    if problem == "existing":
        out.mkdir()
    if problem == "damaged":
        data = bytearray((log.directory / SEGMENT).read_bytes())
        data[100] ^= 1
        (log.directory / SEGMENT).write_bytes(data)
    if problem == "no directory id":
        shutil.copy(log.directory / "meta.properties", tmp_path / "properties")
        text = (tmp_path / "properties").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
        (log.directory / "meta.properties").write_text("\n".join(lines))
    result = run("recover", log.directory, "--out", out)
    assert (result.exit_code, result.output.count("\n")) == (2, 1), result.output
    assert problem == "existing" or not out.exists()
    assert not out.with_name("new.part").exists()
