"""Commands on a Spark Connect server have the same output as on a classic session."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from kframe.snapshot.generate import Health, generate
from tests.cli.running import kframe
from tests.snapshot.samples import state
from tests.spark.fleets import snapshot_directory, two_topics
from tests.spark.processes import BIN, IN_SPARK, LOCAL, environment, server, settings

pytest.importorskip("grpc_status")
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[str]:
    """Start a Connect server with two local cores, as sbin/start-connect-server.sh does. Yield its address."""
    conf = {
        **LOCAL,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": 0,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
        "spark.local.dir": tmp_path / "local",
        "spark.sql.session.timeZone": "UTC",
    }
    command = [BIN / "spark-submit", "--master", "local[2]", *settings(conf), "--class", SERVER, "spark-internal"]
    with server(command, r"Spark Connect server started at: .*:(\d+)") as port:
        yield f"sc://127.0.0.1:{port}"


@pytest.mark.extended
def test_commands_print_same_output_over_connect(spark: Any, remote: str, tmp_path: Path) -> None:
    exports = tmp_path / "fleet"
    exports.mkdir()
    health = Health(under_replicated=0.3, preferred_replica_imbalance=0.2, unclean=0.3)
    snapshot_directory(exports / "east", generate(60, 4, racks=2, seed=3, health=health))
    (exports / "west.jsonl").write_text(two_topics(state("t", 0, -1, [3])))
    scenarios = tmp_path / "scenarios.jsonl"
    scenarios.write_text('{"scenario": "bounce", "verb": "restart", "cluster": "east", "brokers": [1, 2]}\n')
    commands = {
        name: ["spark", name, str(exports), *options, *IN_SPARK, "-o", "json"]
        for name, options in {
            "validate": ["--fail-on", "warning"],
            "failover": [
                "--brokers",
                "2",
                "--each-rack",
                "--scenarios",
                str(scenarios),
                "--fail-on",
                "offline",
                "--out",
            ],
            "requests": ["--brokers", "2", "--one-by-one"],
            "sweep": ["--config", "min.insync.replicas=2", "--out"],
        }.items()
    }

    def command(name: str, out: str) -> list[str]:
        return [word if word != "--out" else f"--out={tmp_path / out / name}" for word in commands[name]]

    client = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client", remote],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        input="".join(json.dumps(command(name, "remote")) + "\n" for name in commands),
    )
    assert client.returncode == 0, client.stderr[-4000:]
    *outputs, module = map(json.loads, client.stdout.splitlines())
    assert module == "pyspark.sql.connect.session"
    for name, (code, stdout, stderr) in zip(commands, outputs, strict=True):
        classic = kframe(*command(name, "classic"))
        assert (code, stderr) == (classic.exit_code, classic.stderr)
        assert json.loads(stdout)["rows"], name
        assert stdout == classic.stdout
    for name in ("failover/changes", "failover/broker_counts", "failover/conditions", "sweep/failures"):
        tables = [parquet.read_table(tmp_path / folder / name) for folder in ("remote", "classic")]
        rows = [sorted(map(repr, table.to_pylist())) for table in tables]
        assert rows[0] == rows[1]
