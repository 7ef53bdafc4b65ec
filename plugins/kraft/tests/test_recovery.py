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
from kframe_kraft.detection import LOG_DIRECTORY
from kframe_kraft.disk import read_history, read_properties, read_quorum_state
from kframe_kraft.sources import read_image
from kframe_kraft.testing.written_log import WrittenLog, change, registration, small_cluster

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
    tmp_path: Path, fill: Callable[[Path], None], states: list[str], differences: list[int | None],
    can_lead: list[bool], committed: int, exit_code: int,
) -> None:  # fmt: skip
    fill(tmp_path)
    rows = document("compare", *(tmp_path / str(node_id) for node_id in (1, 2, 3)), exit_code=exit_code)["rows"]
    assert [row["state"] for row in rows] == states
    assert [row["first_difference"] for row in rows] == differences
    assert [row["can_lead"] for row in rows] == can_lead
    assert {row["committed_at_least"] for row in rows} == {committed}


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
        text.startswith("30 bytes after the last complete batch")
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
