"""The snapshot directory: lossless, written atomically, and read only if its hashes and rules are valid."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from pyarrow import parquet

from kframe.cli.snapshot import group
from kframe.errors import SnapshotError
from kframe.snapshot import Health, Snapshot, generate, read_snapshot, write_snapshot
from kframe.snapshot.directory import ROW_GROUP_ROWS
from kframe.snapshot.facts import CaptureFacts
from kframe.snapshot.manifest import file_entry
from tests.snapshot.samples import dump, dump_text
from tests.snapshot.strategies import snapshots

pytestmark = pytest.mark.kernel


def assert_equal(actual: Snapshot, expected: Snapshot) -> None:
    assert actual.digest() == expected.digest()
    assert actual.unknown == expected.unknown
    assert (actual.source, actual.provenance, actual.assumptions) == (
        expected.source,
        expected.provenance,
        expected.assumptions,
    )


@given(snapshots())
def test_round_trip(snapshot: Snapshot) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept"
        write_snapshot(snapshot, path)
        assert_equal(read_snapshot(path), snapshot)


def test_row_groups(tmp_path: Path) -> None:
    snapshot = generate(ROW_GROUP_ROWS * 2 + 5, 6, health=Health(under_replicated=0.3, preferred_replica_imbalance=0.1))
    write_snapshot(snapshot, tmp_path / "kept")
    metadata = parquet.ParquetFile(tmp_path / "kept" / "partitions.parquet").metadata
    rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert rows == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 5]
    assert_equal(read_snapshot(tmp_path / "kept"), snapshot)


def test_column_names_and_types(tmp_path: Path) -> None:
    write_snapshot(generate(6, 3), tmp_path / "kept")
    schema = parquet.read_schema(tmp_path / "kept" / "partitions.parquet")
    assert {field.name: str(field.type).replace("element", "item") for field in schema} == {
        "topic": "string",
        "partition": "int32",
        "replicas": "list<item: int32>",
        "leader": "int32",
        "leader_epoch": "int32",
        "controller_epoch": "int32",
        "partition_epoch": "int32",
        "leader_recovery_state": "int32",
        "isr": "list<item: int32>",
        "adding_replicas": "list<item: int32>",
        "removing_replicas": "list<item: int32>",
        "elr": "list<item: int32>",
        "last_known_elr": "list<item: int32>",
    }


def test_equal_snapshots_make_equal_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_snapshot(generate(200, 5, seed=3), tmp_path / name)
    for file in ("manifest.json", "partitions.parquet", "brokers.parquet", "topics.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_directory_has_default_permissions(tmp_path: Path) -> None:
    write_snapshot(generate(6, 3), tmp_path / "kept")
    (tmp_path / "plain").mkdir()
    assert (tmp_path / "kept").stat().st_mode == (tmp_path / "plain").stat().st_mode


# Target of a write.


def occupy_with_file(path: Path) -> None:
    path.write_text("mine")


def occupy_with_folder(path: Path) -> None:
    path.mkdir()
    (path / "thesis.txt").write_text("mine")


def occupy_with_manifest(path: Path) -> None:
    write_snapshot(generate(6, 3), path)
    (path / "thesis.txt").write_text("mine")


def occupy_with_link(path: Path) -> None:
    write_snapshot(generate(6, 3), path.parent / "target")
    path.symlink_to(path.parent / "target")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("occupy", [occupy_with_file, occupy_with_folder, occupy_with_manifest, occupy_with_link])
def test_foreign_files_are_not_replaced(occupy: Callable[[Path], None], force: bool, tmp_path: Path) -> None:
    path = tmp_path / "place"
    occupy(path)
    before = sorted((path_, path_.is_dir() or path_.read_bytes()) for path_ in tmp_path.rglob("*"))
    with pytest.raises(SnapshotError, match=r"place: (found|already exists)"):
        write_snapshot(generate(12, 3), path, force=force)
    assert sorted((path_, path_.is_dir() or path_.read_bytes()) for path_ in tmp_path.rglob("*")) == before


@pytest.mark.parametrize("old", [None, generate(6, 3)], ids=["empty", "snapshot"])
def test_force_replaces_a_snapshot(old: Snapshot | None, tmp_path: Path) -> None:
    path, new = tmp_path / "place", generate(12, 3)
    if old is None:
        path.mkdir()
    else:
        write_snapshot(old, path)
    with pytest.raises(SnapshotError, match=r"already exists \(use --force"):
        write_snapshot(new, path)
    write_snapshot(new, path, force=True)
    assert_equal(read_snapshot(path), new)
    assert list(tmp_path.iterdir()) == [path]


def test_too_long_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"found File name too long, expected a writable path"):
        write_snapshot(generate(6, 3), tmp_path / ("n" * 300))


def test_failed_replacement_restores_old_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, old = tmp_path / "place", generate(6, 3)
    write_snapshot(old, path)
    rename = Path.rename

    def refuse_the_new(source: Path, target: Path) -> Path:
        if target == path and source.name != path.name:
            raise OSError(28, "No space left on device")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuse_the_new)
    with pytest.raises(SnapshotError, match="No space left"):
        write_snapshot(generate(12, 3), path, force=True)
    assert_equal(read_snapshot(path), old)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("action", ["read", "write"])
def test_without_pyarrow(action: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_snapshot(generate(6, 3), tmp_path / "kept")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SnapshotError, match=r"expected the package: pip install .kframe-controller\[arrow\]"):
        read_snapshot(tmp_path / "kept") if action == "read" else write_snapshot(generate(6, 3), tmp_path / "new")
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]


def test_no_directory_to_write_in(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="missing: no such directory"):
        write_snapshot(generate(6, 3), tmp_path / "missing" / "place")


@pytest.mark.parametrize("at_row", [131_072, 200_000])
@pytest.mark.parametrize("replacing", [False, True])
def test_interrupted_write_keeps_old_snapshot(at_row: int, replacing: bool, tmp_path: Path) -> None:
    path, old = tmp_path / "place", generate(6, 3)
    if replacing:
        write_snapshot(old, path)

    def interrupt(done: int, total: int) -> None:
        if done == at_row:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_snapshot(generate(200_000, 6), path, force=True, progress=interrupt)
    assert list(tmp_path.iterdir()) == ([path] if replacing else [])
    if replacing:
        assert_equal(read_snapshot(path), old)


# Validation on read.


@pytest.fixture
def snapshot_path(tmp_path: Path) -> Path:
    """A snapshot directory to modify: brokers 1 to 3, topics t (2 partitions) and u (1)."""
    from tests.snapshot.samples import assignment, state

    source = tmp_path / "c.zookeeper.jsonl"
    source.write_text(dump_text(dump(assignment("u", {0: [3]}), state("u", 0, 3, [3]))))
    write_snapshot(read_snapshot(source), tmp_path / "kept")
    source.unlink()
    return tmp_path / "kept"


def tampered(path: Path, table: str, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Rewrite a table with changed rows, and update the manifest."""
    file = path / f"{table}.parquet"
    data = parquet.read_table(file)
    rows = data.to_pylist()
    change(rows)
    replace_table(path, table, pa.Table.from_pylist(rows, schema=data.schema))


def replace_table(path: Path, table: str, data: Any) -> None:
    file = path / f"{table}.parquet"
    parquet.write_table(data, file)
    entry = file_entry(file)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"][file.name] = {"bytes": entry.bytes, "sha256": entry.sha256}
    manifest["counts"][table] = data.num_rows
    (path / "manifest.json").write_text(json.dumps(manifest))


def set_row(row: int, **fields: Any) -> Callable[[list[dict[str, Any]]], object]:
    return lambda rows: rows[row].update(fields)


@pytest.mark.parametrize(
    "table, change, message",
    [
        ("brokers", set_row(1, broker_id=1), "brokers.parquet row 1 field broker_id | 1 after 1 | each once"),
        ("brokers", set_row(0, broker_id=-1), "row 0 field broker_id | -1 | 0 to"),
        ("brokers", set_row(0, broker_id=None), "row 0 field broker_id | None | 0 to"),
        ("brokers", set_row(0, broker_epoch=-5), "row 0 field broker_epoch | -5 | 0 or more"),
        ("brokers", set_row(0, endpoints=[None]), "row 0 field endpoints | None | all of listener"),
        (
            "brokers",
            set_row(0, endpoints=[{"listener": "A", "host": "h", "port": 70_000, "security_protocol": "SSL"}]),
            "row 0 field endpoints port | 70000 | 65535",
        ),
        ("brokers", list.pop, "partitions.parquet | unknown broker id 3 | only brokers"),
        ("topics", set_row(1, topic="t"), "topics.parquet row 1 field topic | t after t | each once"),
        ("topics", set_row(1, topic="a"), "topics.parquet row 1 field topic | a after t | ascending"),
        ("topics", set_row(1, topic="u v"), "row 1 field topic | 'u v' | letters, digits"),
        ("topics", set_row(1, topic=None), "row 1 field topic | '' | 1 to 249"),
        ("topics", set_row(0, partition_count=-2), "row 0 field partition_count | -2 | 0 or more"),
        ("topics", set_row(0, partition_count=3), "partitions.parquet | 3 partitions | the topic table's 4"),
        ("topics", set_row(0, topic_id="!"), "row 0 field topic_id | '!' | 22 characters"),
        ("topics", set_row(0, deleting=None), "topics.parquet field deleting | 1 null in 2 rows | none"),
        ("topics", set_row(0, configs=[("a", None)]), "row 0 field configs | ('a', None) | different names"),
        ("topics", set_row(0, configs=[("a", "b"), ("a", "c")]), "row 0 field configs | 'a' | different names"),
        ("topics", set_row(0, configs=[("min.insync.replicas", "x")]), "row 0 (t) field config | 'x' | 1 to"),
        ("partitions", set_row(1, partition=0), "partitions.parquet row 1 | topic t partition 0 | t-1 (rows sorted"),
        ("partitions", set_row(2, topic="t", partition=2), "row 2 | topic t partition 2 | u-0"),
        ("partitions", set_row(2, topic="v"), "row 2 | not in the topic table | u-0"),
        ("partitions", list.pop, "partitions.parquet | 2 partitions | 3"),
        ("partitions", set_row(0, topic=None), "field topic | 1 null in 3 rows | none"),
        ("partitions", set_row(0, leader=None), "field leader | 1 null in 3 rows | none"),
        ("partitions", set_row(0, leader=-2), "row 0 (t-0) field leader | -2 | -1 for none"),
        ("partitions", set_row(0, leader=9), "row 0 (t-0) field leader | broker 9 | replicas [1, 2, 3]"),
        ("partitions", set_row(0, replicas=[]), "row 0 (t-0) field replicas | an empty list | at least one"),
        ("partitions", set_row(0, replicas=[1, None]), "field replicas | null inside a list | broker ids"),
        ("partitions", set_row(0, replicas=None), "field replicas | 1 null in 3 rows | none"),
        ("partitions", set_row(0, replicas=[1, 2, -3]), "row 0 (t-0) field replicas | -3 | broker ids"),
        ("partitions", set_row(0, replicas=[1, 1, 2]), "row 0 (t-0) field replicas | broker 1 twice | once"),
        ("partitions", set_row(0, isr=[2, 4]), "row 0 (t-0) field isr | broker 4 | replicas [1, 2, 3]"),
        ("partitions", set_row(0, adding_replicas=[4]), "row 0 (t-0) field adding_replicas | broker 4 | replicas"),
        ("partitions", set_row(0, leader_epoch=-1), "row 0 (t-0) field leader_epoch | -1 | where there is no state"),
        ("partitions", set_row(0, partition_epoch=-2), "row 0 (t-0) field partition_epoch | -2 | -1 for no state"),
        (
            "partitions",
            set_row(0, partition_epoch=-1),
            "row 0 (t-0) field partition_epoch | beside a leader | 0 or more",
        ),
        ("partitions", set_row(0, leader_recovery_state=7), "field leader_recovery_state | 7 | 0 or 1"),
    ],
    ids=lambda value: value if isinstance(value, str) and "|" in value else "",
)
def test_table_with_invalid_values_is_refused(
    snapshot_path: Path, table: str, change: Callable[[list[dict[str, Any]]], object], message: str
) -> None:
    tampered(snapshot_path, table, change)
    assert_refused(snapshot_path, message)


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda data: data.drop_columns(["partition_epoch"]),
            "partitions.parquet schema | topic string, partition int32 | partition_epoch int32",
        ),
        (
            lambda data: data.set_column(1, "partition", data["partition"].cast(pa.int64())),
            "partitions.parquet schema | partition int64 | partition int32",
        ),
        (
            lambda data: data.append_column("extra", data["partition"]),
            "partitions.parquet schema | extra int32 | partition int32",
        ),
        (
            lambda data: data.set_column(2, "replicas", pa.array([[1] * 100_000] * 3, pa.list_(pa.int32()))),
            "partitions.parquet | 300,000 entries in a column | at most 10",
        ),
    ],
)
def test_table_with_wrong_schema_is_refused(snapshot_path: Path, change: Callable[[Any], Any], message: str) -> None:
    replace_table(snapshot_path, "partitions", change(parquet.read_table(snapshot_path / "partitions.parquet")))
    assert_refused(snapshot_path, message)


def edit_manifest(**changed: Any) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        manifest = json.loads((path / "manifest.json").read_text())
        for name, value in changed.items():
            if isinstance(value, dict) and name in manifest:
                manifest[name].update(value)
            else:
                manifest[name] = value
        (path / "manifest.json").write_text(json.dumps(manifest))

    return edit


def write(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda path: void((path / name).write_bytes(content))


def remove(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


def void(_: object) -> None:
    pass


def flip_byte(path: Path) -> None:
    content = bytearray((path / "partitions.parquet").read_bytes())
    content[100] ^= 1
    (path / "partitions.parquet").write_bytes(content)


def garbage_with_right_hash(path: Path) -> None:
    file = path / "topics.parquet"
    file.write_bytes(b"PAR1 this is not one PAR1")
    edit_manifest(files={file.name: dataclass_of(file)})(path)


def dataclass_of(file: Path) -> dict[str, Any]:
    entry = file_entry(file)
    return {"bytes": entry.bytes, "sha256": entry.sha256}


@pytest.mark.parametrize(
    "damage, message",
    [
        (remove("manifest.json"), "manifest.json | no such file | a snapshot"),
        (remove("topics.parquet"), "topics.parquet | No such file or directory | the manifest lists"),
        (write("topics.parquet", b""), "topics.parquet | 0 bytes | the manifest's"),
        (flip_byte, "partitions.parquet | sha256 | the manifest's"),
        (garbage_with_right_hash, "topics.parquet | no readable Parquet | the topics table"),
        (write("manifest.json", b""), "manifest.json | an empty file | a snapshot"),
        (write("manifest.json", b"{"), "manifest.json | malformed JSON | whole JSON"),
        (write("manifest.json", b'{"schema": "\xff"}'), "manifest.json | broken UTF-8 | UTF-8"),
        (edit_manifest(schema="kframe.snapshot/v2"), "field schema | written by a newer kframe | 'kframe.snapshot/v1'"),
        (edit_manifest(schema="other/v1"), "field schema | 'other/v1' | 'kframe.snapshot/v1'"),
        (edit_manifest(schema=1), "field schema | 1 | str"),
        (edit_manifest(counts={"partitions": 4}), "partitions.parquet | 3 rows | the manifest's 4"),
        (edit_manifest(counts={"partitions": 10**12}), "field counts | does not fit | 2147483647"),
        (edit_manifest(counts={"partitions": -1}), "field counts | does not fit | >= 0"),
        (edit_manifest(counts={"partitions": 3.0}), "field counts | float | int"),
        (edit_manifest(counts={"shards": 3}), "field counts | shards | replicas"),
        (
            edit_manifest(files={"more.parquet": {"bytes": 1, "sha256": "0" * 64}}),
            "field files | more.parquet | topics",
        ),
        (edit_manifest(files={"topics.parquet": {"bytes": 1, "sha256": "x"}}), "field files | does not fit | matching"),
        (edit_manifest(unknown=["partitions.leader"]), "partitions.parquet field leader | 0 nulls | all null"),
        (edit_manifest(unknown=["partitions.colour"]), "field unknown | partitions.colour | []"),
        (edit_manifest(controller_id=-1), "field controller_id | -1 | >= 0"),
        (edit_manifest(surprise=1), "manifest.json | unknown field surprise | only the fields"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_directory_is_refused(snapshot_path: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(snapshot_path)
    assert_refused(snapshot_path, message)


def assert_refused(path: Path, message: str) -> None:
    location, actual, expected = message.split(" | ")
    with pytest.raises(SnapshotError) as caught:
        read_snapshot(path)
    assert str(path) in caught.value.where
    assert location in caught.value.where
    assert actual in caught.value.actual
    assert expected in caught.value.expected
    out = path.parent / "out"
    result = CliRunner().invoke(group, ["convert", str(path), str(out)])
    assert (result.exit_code, result.stdout, out.exists()) == (2, "", False)


def test_wrong_hash_is_refused_before_parquet_is_parsed(snapshot_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flip_byte(snapshot_path)
    monkeypatch.setattr(parquet, "ParquetFile", None)
    with pytest.raises(SnapshotError, match="found sha256"):
        read_snapshot(snapshot_path)


def test_leader_and_isr_go_together(snapshot_path: Path) -> None:
    data = parquet.read_table(snapshot_path / "partitions.parquet")
    nulls = pa.nulls(data.num_rows, pa.list_(pa.int32()))
    replace_table(snapshot_path, "partitions", data.set_column(data.schema.get_field_index("isr"), "isr", nulls))
    edit_manifest(unknown=["partitions.isr"])(snapshot_path)
    assert_refused(snapshot_path, "field isr | leader or isr alone | both or neither")


def test_moved_directory_is_unchanged(snapshot_path: Path, tmp_path: Path) -> None:
    before = read_snapshot(snapshot_path)
    shutil.move(snapshot_path, tmp_path / "elsewhere")
    assert_equal(read_snapshot(tmp_path / "elsewhere"), before)


def test_digest_covers_every_column() -> None:
    base = generate(20, 5)
    digests = {base.digest()}
    changed = base.partitions.leader_epoch
    assert changed is not None
    for name in ("leader", "leader_epoch", "controller_epoch", "partition_epoch", "leader_recovery_state"):
        column = getattr(base.partitions, name).copy()
        column[7] += 1
        partitions = dataclasses.replace(base.partitions, **{name: column})
        digests.add(dataclasses.replace(base, partitions=partitions).digest())
    for name in ("replicas", "isr", "adding_replicas"):
        ragged = getattr(base.partitions, name)
        other = dataclasses.replace(ragged, values=np.append(ragged.values[:-1], [4]).astype(np.int32))
        partitions = dataclasses.replace(base.partitions, **{name: other})
        digests.add(dataclasses.replace(base, partitions=partitions).digest())
    assert len(digests) == 9


CAPTURE = CaptureFacts(3, False, 77, 2, ("/brokers/topics/a", "/controller"), {"/brokers/ids/x": "found 'x'"})


@pytest.mark.parametrize("capture", [CAPTURE, None], ids=["captured", "not captured"])
def test_manifest_alone_has_the_capture(capture: CaptureFacts | None, tmp_path: Path) -> None:
    snapshot = dataclasses.replace(generate(6, 3), capture=capture)
    write_snapshot(snapshot, tmp_path / "kept")
    assert read_snapshot(tmp_path / "kept").capture == capture
    assert ('"capture"' in (tmp_path / "kept" / "manifest.json").read_text()) == (capture is not None)
    assert snapshot.digest() == generate(6, 3).digest()
