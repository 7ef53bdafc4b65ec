"""The format ``kframe`` in a real Spark: it reads the same rows as the readers, and writes a snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kframe.snapshot import generate, read_snapshot
from kframe.spark import register
from kframe.spark.fleet import fingerprint, inputs_of
from kframe.spark.rows import rows_of
from kframe.spark.schema import BROKERS, CLUSTERS, PARTITIONS, TOPICS, FleetTable, spark_type
from tests.spark.fleets import BROKEN_STATE, mixed, snapshot_directory, two_topics

CLUSTER_FILES = {
    "east": "east.zookeeper.jsonl",
    "north": "north.topics-describe.txt",
    "south": "south.kcat.json",
    "west": "west.jsonl.gz",
}


@pytest.fixture
def reader(spark: Any) -> Any:
    register(spark)
    return spark.read.format("kframe")


def sorted_rows(frame: Any, table: FleetTable) -> list[dict[str, Any]]:
    order = [(name, "ascending") for name in table.key]
    rows: list[dict[str, Any]] = frame.toArrow().sort_by(order).to_pylist()
    return rows


@pytest.mark.parametrize("table", [PARTITIONS, BROKERS, TOPICS, CLUSTERS], ids=lambda table: table.name)
def test_fleet_of_all_formats(reader: Any, tmp_path: Path, table: FleetTable) -> None:
    exports = mixed(tmp_path / "fleet")
    rows = sorted_rows(reader.option("table", table.name).load(str(exports)), table)
    assert rows == [
        row
        for cluster, file in CLUSTER_FILES.items()
        for batch in rows_of(read_snapshot(exports / file), cluster, table)
        for row in batch.to_pylist()
    ]


def test_only_named_clusters_are_read(reader: Any, tmp_path: Path) -> None:
    exports = mixed(tmp_path / "fleet")
    (exports / "bad.jsonl").write_text("what is not read is not refused")
    frame = reader.option("clusters", "east, west").load(str(exports))
    assert {row.cluster for row in frame.select("cluster").collect()} == {"east", "west"}
    assert frame.rdd.getNumPartitions() == 2


def test_a_relation_may_be_read_twice_in_a_query(reader: Any, tmp_path: Path) -> None:
    """With pushed filters, Spark 4.3 returns the rows of one scan for both scans."""
    frame = reader.load(str(mixed(tmp_path / "fleet")))
    union = frame.where("cluster = 'east'").unionByName(frame.where("cluster = 'west'"))
    assert {row.cluster for row in union.select("cluster").collect()} == {"east", "west"}


def test_filters_skip_files_and_rows(reader: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exports = mixed(tmp_path / "fleet")
    (exports / "bad.jsonl").write_text("what is not read is not refused")
    frame = (
        reader.option("pushdown", "true")
        .load(str(exports))
        .where("cluster in ('east', 'west') and topic = 'u' and leader >= 0")
    )
    assert [(row.cluster, row.topic) for row in frame.collect()] == [("east", "u")]
    assert frame.rdd.getNumPartitions() == 2  # one file for each of the two requested clusters
    frame.explain()
    assert " Filter " not in capsys.readouterr().out  # Spark has no filter left


def test_a_range_of_row_groups_is_a_spark_partition(reader: Any, tmp_path: Path) -> None:
    snapshot = generate(1_000, 5, 3, topics=10)
    snapshot_directory(tmp_path / "big", snapshot, 100)
    frame = reader.options(rowGroups=4, pushdown=True).load(str(tmp_path / "big"))
    assert frame.rdd.getNumPartitions() == 3
    assert sorted_rows(frame, PARTITIONS) == [
        row for batch in rows_of(snapshot, "big", PARTITIONS) for row in batch.to_pylist()
    ]
    last = frame.where(f"topic = '{snapshot.topics.names[-1]}'")
    assert (last.count(), last.rdd.getNumPartitions()) == (100, 1)


def test_faults_fail_query_or_are_quarantined(reader: Any, tmp_path: Path) -> None:
    exports = mixed(tmp_path / "fleet")
    (exports / "east.zookeeper.jsonl").write_text(two_topics(BROKEN_STATE))
    (exports / "west.jsonl.gz").write_bytes((exports / "west.jsonl.gz").read_bytes()[:-9])
    with pytest.raises(Exception, match=r"east.zookeeper.jsonl:10 data of .*: found malformed JSON"):
        reader.option("clusters", "east").load(str(exports)).count()
    tolerant = reader.option("clusters", "east,north,south,west").option("mode", "PERMISSIVE")
    valid_topics = {
        (row.cluster, row.topic) for row in tolerant.load(str(exports)).select("cluster", "topic").collect()
    }
    assert valid_topics == {("east", "u"), ("north", "t"), ("south", "t")}
    quarantined = reader.option("table", "quarantine").load(str(exports)).orderBy("cluster").collect()
    assert [(row.cluster, row.topic, row.partitions) for row in quarantined] == [("east", "t", 2), ("west", None, None)]
    assert [row.location.rpartition("/")[2] for row in quarantined] == ["state", "west.jsonl.gz"]
    assert "damaged gzip" in quarantined[1].actual


@pytest.mark.parametrize(
    "options,message",
    [
        ({"table": "nothing"}, "option table: found 'nothing'"),
        ({"mode": "DROPMALFORMED"}, "option mode: found 'DROPMALFORMED'"),
        ({"rowGroups": "0"}, "option rowgroups: found '0'"),
        ({"row_groups": "1"}, "option row_groups: found an unknown option"),
        ({"name": "one"}, "name: found 'one' for 4 sources"),
    ],
)
def test_wrong_options_are_refused(reader: Any, tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        reader.options(**options).load(str(mixed(tmp_path / "fleet"))).count()


def test_different_schema_is_refused(reader: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="the schema of table partitions: found"):
        reader.schema("topic string").load(str(mixed(tmp_path / "fleet"))).count()


def test_partitions_are_written_as_snapshots(reader: Any, tmp_path: Path) -> None:
    exports, out = mixed(tmp_path / "fleet"), tmp_path / "out"
    frame = reader.load(str(exports)).repartition(3)
    frame.write.format("kframe").mode("append").save(str(out))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet", "out"]
    assert sorted(path.name for path in out.iterdir()) == sorted(CLUSTER_FILES)
    original, written = read_snapshot(exports / CLUSTER_FILES["east"]), read_snapshot(out / "east")
    assert written.topics.names == original.topics.names
    for name in original.partitions.numbers():
        assert getattr(written.partitions, name).tolist() == getattr(original.partitions, name).tolist()
    with pytest.raises(Exception, match=r"out/east: already exists"):
        frame.write.format("kframe").mode("append").save(str(out))
    frame.where("cluster = 'east'").write.format("kframe").mode("overwrite").save(str(out))
    assert sorted(path.name for path in out.iterdir()) == sorted(CLUSTER_FILES)
    assert read_snapshot(out / "east").digest() == written.digest()


def test_incomplete_cluster_is_not_written(reader: Any, tmp_path: Path) -> None:
    exports, out = mixed(tmp_path / "fleet"), tmp_path / "out"
    frame = reader.load(str(exports)).where("not (cluster = 'east' and topic = 't' and partition = 0)")
    with pytest.raises(Exception, match=r"cluster east table partitions: found .* out of turn"):
        frame.write.format("kframe").mode("append").save(str(out))
    with pytest.raises(Exception, match="the schema of table partitions"):
        frame.select("cluster", "topic").write.format("kframe").mode("append").save(str(out))
    assert [path.name for path in tmp_path.iterdir()] == ["fleet"]


@pytest.mark.parametrize("large", ["false", "true"])
def test_columns_in_another_order_and_case_are_written(reader: Any, spark: Any, tmp_path: Path, large: str) -> None:
    exports, out = mixed(tmp_path / "fleet"), tmp_path / "out"
    frame = reader.load(str(exports)).where("cluster = 'east'")
    permuted = frame.select(*(frame[name].alias(name.upper()) for name in reversed(frame.columns)))
    before = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes")
    try:
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
        permuted.write.format("kframe").mode("append").save(str(out))
    finally:
        spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", before)
    original, written = read_snapshot(exports / CLUSTER_FILES["east"]), read_snapshot(out / "east")
    for name in original.partitions.numbers():
        assert getattr(written.partitions, name).tolist() == getattr(original.partitions, name).tolist()
    assert written.topics.names == original.topics.names


def test_columns_in_another_order_and_case_are_read(reader: Any, tmp_path: Path) -> None:
    exports = mixed(tmp_path / "fleet")
    expected = sorted_rows(reader.load(str(exports)), PARTITIONS)
    columns = [f"{field.name.upper()} {spark_type(field.type)}" for field in reversed(PARTITIONS.schema)]
    rows = reader.schema(", ".join(columns)).load(str(exports)).select(*PARTITIONS.schema.names)
    assert sorted_rows(rows.toDF(*PARTITIONS.schema.names), PARTITIONS) == expected


@pytest.mark.parametrize(
    "column,value,message",
    [
        ("isr", "array(1, null)", "cluster east field isr: found 1 null in lists"),
        ("topic", "cast(null as string)", "cluster east table partitions field topic: found null"),
        ("partition", "cast(null as int)", "cluster east table partitions field partition: found null"),
        ("cluster", "cast(null as string)", "column cluster: found cluster name ''"),
    ],
)
def test_nulls_are_not_written(reader: Any, tmp_path: Path, column: str, value: str, message: str) -> None:
    exports, out = mixed(tmp_path / "fleet"), tmp_path / "out"
    frame = reader.load(str(exports)).where("cluster = 'east'")
    changed = frame.selectExpr(
        *(f"if(topic = 'u', {value}, {name}) as {name}" if name == column else name for name in frame.columns)
    )
    with pytest.raises(Exception, match=message):
        changed.write.format("kframe").mode("append").save(str(out))
    assert not out.exists()


def test_fingerprint_changes_with_any_byte(tmp_path: Path) -> None:
    east, text = snapshot_directory(tmp_path / "east", generate(50, 4, seed=2)), tmp_path / "west.jsonl"
    text.write_text(two_topics())
    before = [fingerprint(inputs_of(str(path))) for path in (east, text)]
    assert [fingerprint(inputs_of(str(path))) for path in (east, text)] == before
    text.write_text(two_topics().replace("1", "2", 1))
    (east / "brokers.parquet").write_bytes((east / "brokers.parquet").read_bytes()[::-1])
    after = [fingerprint(inputs_of(str(path))) for path in (east, text)]
    assert len({*before, *after}) == 4
