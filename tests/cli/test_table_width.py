"""Tables fit in 100 characters; columns that do not fit are named, and ``-o wide`` has them. Offline rows are red."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

from kframe.cli.app import cli
from tests.architecture.source import ROOT
from tests.cli.running import CLUSTER, HEALTHY, PLAN, kframe
from tests.cli.test_exits import leaves
from tests.cli.test_live_documents import EMBEDDED

WIDTH: Final = 100
DEGRADED: Final = CLUSTER / "broker-4-dead.zookeeper.jsonl.gz"
DESCRIBED: Final = CLUSTER / "broker-4-dead.topics-describe.txt.gz"
KCAT: Final = CLUSTER / "broker-4-dead.kcat.json.gz"
KRAFT: Final = CLUSTER.parent / "kafka-4-kraft-three-brokers" / "topics-describe.txt"
LOG: Final = CLUSTER.parent / "kafka-4.4-broker-failure"
#: Every command with ``--output``, and lines of arguments for it. Words in capitals stand for the files above, for
#: new files, and for the options of an embedded cluster.
TABLES: Final[dict[str, tuple[str, ...]]] = {
    "bench": ("broker-failure --partitions 1000 --brokers 6 --runs 1",),
    "controller resign": ("--zookeeper embedded:2181 EMBEDDED",),
    "controller shadow": ("--zookeeper embedded:2181 --for 0 EMBEDDED",),
    "controller status": ("--zookeeper embedded:2181 EMBEDDED",),
    "elect": ("--type preferred --all --bootstrap-server embedded:9092 EMBEDDED",),
    "explain": (
        "HEALTHY __consumer_offsets-0", "HEALTHY __consumer_offsets-0 --fail 1,2,3",
        "DEGRADED clickstream.snapshots.v1-3", "LOG orders-0 --fail 1,2,3", "LOG scratch-0 --fail 1,2,3",
        "DESCRIBED __consumer_offsets-1",
    ),
    "kraft compare": ("LOG COPY",),
    "kraft recover": ("LOG --node-id 3000",),
    "log at": ("LOG", "LOG --offset 700 --list brokers"),
    "log diff": (
        "LOG 600 700", "LOG 600 end --by topic", "LOG 600 end --by broker", "LOG 600 end --by rack",
    ),
    "log show": ("LOG", "LOG --control --boundaries"),
    "log why": ("LOG clicks-0", "LOG scratch-1 --offset 700"),
    "plan abort": (),
    "plan check": ("PLAN", "HEALTHY PLAN", "DEGRADED PLAN", "DESCRIBED PLAN", "LOG PLAN", "LOG MOVE"),
    "plan diff": ("HEALTHY PLAN",),
    "plan execute": ("kafka://embedded:9092 MOVE --journal NEW EMBEDDED",),
    "plan generate": (
        "HEALTHY --rebalance", "HEALTHY --remove-brokers 1-5", "HEALTHY --remove-brokers 4 --broker-cap 300",
        "HEALTHY --add-brokers 7:rack-0", "HEALTHY --replace 4=6", "DEGRADED --remove-brokers 4 --fix-racks",
        "DESCRIBED --rebalance", "LOG --remove-brokers 3", "HEALTHY --evacuate-rack rack-0",
    ),
    "plan pause": (),
    "plan resume": (),
    "plan rollback": (),
    "plan show": ("HEALTHY PLAN", "DEGRADED PLAN"),
    "plan restarts": ("HEALTHY", "HEALTHY --allow-unavoidable --conflicts", "LOG", "DESCRIBED --max-at-min-isr 9"),
    "plan stage": ("HEALTHY PLAN --max-moves 5", "DEGRADED PLAN --max-moves 5"),
    "plan status": (),
    "plugins check": ("rack-spread",),
    "plugins list": ("",),
    "plugins show": ("rack-spread", "simulator", "kraft", "builtin", "zookeeper", "kafka-wire"),
    "reassign cancel": ("--all --bootstrap-server embedded:9092 EMBEDDED",),
    "reassign list": ("--bootstrap-server embedded:9092 EMBEDDED",),
    "reassign start": ("t-0=3,4 --bootstrap-server embedded:9092 EMBEDDED",),
    "scenario check": ("SCENARIO MISSING",),
    "scenario run": ("SCENARIO", "KRAFT_SCENARIO"),
    "schema": ("",),
    "sim replay": ("1",),
    "sim run": ("--seeds 1..1", "--seeds 1..1 --each"),
    "snapshot capture": ("zookeeper://captured NEW EMBEDDED",),
    "snapshot show": tuple(
        f"{snapshot}{listing}"
        for snapshot in ("HEALTHY", "DEGRADED", "DESCRIBED", "KCAT", "KRAFT", "LOG", "PLAN")
        for listing in ("", " --list brokers", " --list topics", " --list partitions")
    ),
    "states": ("",),
    "whatif create": ("HEALTHY new --rf 3", "HEALTHY new --rf 13", "HEALTHY __consumer_offsets", "LOG new --rf 3"),
    "whatif create-partitions": ("HEALTHY orders.dlq.v1 --partitions 8", "LOG orders --partitions 50"),
    "whatif delete": ("HEALTHY orders.*", "HEALTHY *", "LOG orders"),
    "whatif elect": (
        "DEGRADED --type preferred", "DEGRADED --type unclean", "LOG --type unclean",
        "HEALTHY --type preferred --partition __consumer_offsets-0",
    ),
    "whatif fail": (
        "HEALTHY --brokers 2", "HEALTHY --brokers 1-6 --one-by-one", "DESCRIBED --brokers 2", "KCAT --brokers 2",
        "KRAFT --brokers 2", "LOG --brokers 1,2",
    ),
    "whatif fail-directories": ("LOG --broker 1 --directory N0YVQy9kmh0-VNO5c9znAg",),
    "whatif fence": ("LOG --brokers 2",),
    "whatif reassign": ("HEALTHY PLAN", "DEGRADED PLAN", "LOG ORDERS"),
    "whatif restart": ("DEGRADED --brokers 4", "LOG --brokers 1 --unclean"),
    "whatif shutdown": ("HEALTHY --racks rack-0", "LOG --brokers 1"),
    "whatif sweep": ("HEALTHY", "DEGRADED", "DESCRIBED", "KCAT", "KRAFT", "LOG", "LOG --elr both"),
    "whatif unfence": ("LOG --brokers 2",),
    "whatif update-features": ("LOG metadata.version=7", "LOG eligible.leader.replicas.version=0"),
}  # fmt: skip
#: Commands that need a journal, Spark or a run that breaks an invariant; their tables are printed by the same function.
ELSEWHERE: Final = {
    "plan abort",
    "plan pause",
    "plan resume",
    "plan rollback",
    "plan status",
    "sim shrink",
    "sim total",
    "spark failover",
    "spark ingest",
    "spark plan",
    "spark report",
    "spark requests",
    "spark sweep",
    "spark validate",
}
LINES: Final = [(f"{name} {line}").strip() for name, lines in TABLES.items() for line in lines]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[object]]:
    """The arguments that words in capitals stand for."""
    monkeypatch.chdir(ROOT)
    moves = {}
    for name, topic, replicas in (("MOVE", "t", [3, 4]), ("ORDERS", "orders", [1, 3, 2])):
        moves[name] = tmp_path / f"{name}.json"
        moves[name].write_text(
            json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})
        )
    paths: dict[str, object] = {
        "HEALTHY": HEALTHY,
        "DEGRADED": DEGRADED,
        "DESCRIBED": DESCRIBED,
        "KCAT": KCAT,
        "KRAFT": KRAFT,
        "LOG": LOG,
        "PLAN": PLAN,
        "SCENARIO": "examples/scenarios/rolling-restart.yaml",
        "KRAFT_SCENARIO": "tests/golden-kraft/scenarios/users.yaml",
        "MISSING": "missing.yaml",
        "NEW": tmp_path / "new",
        "COPY": shutil.copytree(LOG, tmp_path / "copy"),
        **moves,
    }
    return {"EMBEDDED": [*EMBEDDED], **{name: [path] for name, path in paths.items()}}


def test_every_command_with_tables_is_listed() -> None:
    with_output = {
        " ".join(path) for path, command in leaves(cli) if any("--output" in option.opts for option in command.params)
    }
    assert {name for name, lines in TABLES.items() if lines} | ELSEWHERE == with_output


@pytest.mark.parametrize("line", LINES)
def test_tables_fit_or_name_the_columns_of_wide_output(line: str, files: dict[str, list[object]]) -> None:
    arguments = [argument for word in line.split() for argument in files.get(word, [word])]
    result = kframe(*arguments, "-o", "table")
    assert result.exit_code in (0, 1, 2, 3)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    text = result.stdout
    assert text
    new_files = [str(path) for name in ("NEW", "MOVE", "ORDERS") for path in files[name]]
    lines = [row for row in text.splitlines() if not any(path in row for path in new_files)]
    assert [row for row in lines if len(row) > WIDTH] == []


@pytest.mark.parametrize("snapshot", [HEALTHY, KRAFT, LOG], ids=["zookeeper", "describe", "kraft"])
@pytest.mark.parametrize("words", ["snapshot show --list brokers", "snapshot show --list partitions", "whatif sweep"])
def test_columns_that_do_not_fit_are_named(words: str, snapshot: Path) -> None:
    group, name, *options = words.split()
    table, wide = (kframe(group, name, snapshot, *options, "-o", output).stdout for output in ("table", "wide"))
    omitted = [text for text in table.replace(",\n", ", ").splitlines() if text.startswith("(-o wide adds ")]
    titles = {title for text in omitted for title in text[14:-1].split(", ")}
    assert titles <= set(wide.split())


#: Commands that show what is offline, and the words with which each red line begins.
OFFLINE: Final = (
    (f"whatif fail {HEALTHY} --brokers 4 --limit 5", {"offline 0 5", "4 rack-0 down"}),
    (f"snapshot show {DEGRADED}", {"offline 5"}),
    (f"snapshot show {DEGRADED} --list brokers", {"4 no -"}),
    (f"snapshot show {DEGRADED} --list topics", {"clickstream.snapshots.v1 6 1"}),
    (f"snapshot show {DEGRADED} --topics clickstream.snapshots.v1", {"clickstream.snapshots.v1 3 -1"}),
    (f"whatif sweep {DEGRADED} --depth 1 --no-racks --limit 1", {"broker 5 12"}),
    (f"log at {LOG} --offset 700", {"offline 14"}),
)


@pytest.mark.parametrize("line, expected", OFFLINE, ids=[line.replace(str(CLUSTER), "") for line, _ in OFFLINE])
@pytest.mark.parametrize("no_color", [None, "1"])
def test_what_is_offline_is_red_on_terminals(line: str, expected: set[str], no_color: str | None) -> None:
    runner = CliRunner(env={"NO_COLOR": no_color})
    colored, plain = (
        runner.invoke(cli, line.split(), color=color, prog_name="kframe").stdout for color in (True, False)
    )
    assert "\x1b" not in plain
    assert click.unstyle(colored) == plain
    red = [click.unstyle(text).split() for text in colored.splitlines() if text.startswith("\x1b[31m")]
    starts = {start for start in expected if any(words[: len(start.split())] == start.split() for words in red)}
    assert starts == (set() if no_color else expected)
    assert bool(red) == (no_color is None)
