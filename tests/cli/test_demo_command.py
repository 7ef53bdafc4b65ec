"""``kframe demo``, on a cluster small enough for a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kframe.cli import demo
from kframe.cli.app import cli
from kframe.snapshot import write_snapshot
from tests.whatif.samples import small


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["demo", *map(str, arguments)])


def test_the_bundled_snapshot_and_a_generated_cluster() -> None:
    done = run("--partitions", "2000", "--brokers", "10")
    assert done.exit_code == 0, done.output
    assert "healthy.zookeeper.jsonl.gz" in done.stdout
    assert "2,000 partitions on 10 brokers" in done.stdout
    assert done.stdout.count("of it, encoding the requests") == 2
    assert "offline" in done.stdout
    assert "Why? " in done.stdout


def test_a_snapshot_of_ones_own(tmp_path: Path) -> None:
    write_snapshot(small(), tmp_path / "small")
    done = run("--snapshot", tmp_path / "small", "--partitions", "100", "--brokers", "5")
    assert done.exit_code == 0, done.output
    assert "fail broker 1" in done.stdout


def test_without_the_bundled_snapshot_the_error_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "BUNDLED", Path("examples", "no-such-file"))
    done = run("--partitions", "100")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "--snapshot: found no examples/no-such-file around the package" in done.stderr


@pytest.mark.parametrize("arguments", [("--partitions", "0"), ("--brokers", "1"), ("--snapshot", "no-such-file")])
def test_bad_input(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
