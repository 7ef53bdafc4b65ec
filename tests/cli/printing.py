"""Command lines of all commands that print tables, and what words in capitals of command lines stand for."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT
from tests.cli import running
from tests.cli.running import HEALTHY, PLAN

DEGRADED: Final = running.CLUSTER / "broker-4-dead.zookeeper.jsonl.gz"
DESCRIBED: Final = running.CLUSTER / "broker-4-dead.topics-describe.txt.gz"
KRAFT: Final = running.CLUSTER.parent / "kafka-4-kraft-three-brokers" / "topics-describe.txt"
LOG: Final = running.CLUSTER.parent / "kafka-4.4-broker-failure"
DISKS: Final = ROOT / "tests" / "plans" / "disks" / "data"
#: Options and arguments of an embedded cluster.
EMBEDDED: Final = (
    "--plugins-dir",
    Path(__file__).parent / "embedded_plugin",
    "--no-plugin",
    "kafka-wire",
    "--no-plugin",
    "zookeeper",
    "--no-plugin",
    "kraft",
)
ADMIN: Final = ("--bootstrap-server", "embedded:9092", *EMBEDDED)
CLUSTER: Final = ("kafka://embedded:9092", *EMBEDDED)
STORE: Final = ("--zookeeper", "embedded:2181", *EMBEDDED)
_WORDS: Final[Mapping[str, tuple[object, ...]]] = {
    "ADMIN": ADMIN,
    "CLUSTER": CLUSTER,
    "DEAD_BROKER": ("--bootstrap-server", "127.0.0.1:1"),
    "EMBEDDED": EMBEDDED,
    "STORE": STORE,
}
#: Commands with ``--output``, and lines of arguments for each. ``words`` replaces words in capitals.
TABLES: Final[dict[str, tuple[str, ...]]] = {
    "bench": ("broker-failure --partitions 1000 --brokers 6 --runs 1",),
    "controller resign": ("STORE",),
    "controller shadow": ("--for 0 STORE",),
    "controller status": ("STORE",),
    "elect": ("--type preferred --all ADMIN",),
    "explain": (
        "HEALTHY __consumer_offsets-0", "HEALTHY __consumer_offsets-0 --fail 1,2,3",
        "DEGRADED clickstream.snapshots.v1-3", "LOG orders-0 --fail 1,2,3", "LOG scratch-0 --fail 1,2,3",
        "DESCRIBED __consumer_offsets-1",
    ),
    "kraft compare": ("LOG COPY",),
    "kraft format": ("-t 4L6g3nShT-eMCtK--X86sw -c CONTROLLER --standalone",),
    "kraft recover": ("LOG --node-id 3000",),
    "log at": ("LOG", "LOG --offset 700 --list brokers"),
    "log diff": (
        "LOG 600 700", "LOG 600 end --by topic", "LOG 600 end --by broker", "LOG 600 end --by rack",
    ),
    "log show": ("LOG", "LOG --control --boundaries"),
    "log why": ("LOG clicks-0", "LOG scratch-1 --offset 700"),
    "plan check": ("PLAN", "HEALTHY PLAN", "DEGRADED PLAN", "DESCRIBED PLAN", "LOG PLAN", "LOG MOVE",
                   "HEALTHY PLAN --one-rack *"),
    "plan diff": ("HEALTHY PLAN",),
    "plan disks": (
        "TOPICS --log-dirs LOG_DIRS",
        "TOPICS --log-dirs LOG_DIRS --relieve 1:/var/lib/kafka/d0 --until 50GB --rate 5MB/s",
        "TOPICS --log-dirs LOG_DIRS --disk-capacity 1TB --relieve 1:/var/lib/kafka/d0 --until 80%", "CLUSTER",
    ),
    "plan execute": ("CLUSTER MOVE --journal NEW",),
    "plan generate": (
        "HEALTHY --rebalance", "HEALTHY --remove-brokers 1-5", "HEALTHY --remove-brokers 4 --broker-cap 300",
        "HEALTHY --add-brokers 7:rack-0", "HEALTHY --replace 4=6", "DEGRADED --remove-brokers 4 --fix-racks",
        "DESCRIBED --rebalance", "LOG --remove-brokers 3", "HEALTHY --evacuate-rack rack-0",
        "HEALTHY --one-rack fraud.*",
        "HEALTHY --leaders-only --selector avoid-brokers --selector-option avoid-brokers.brokers=2",
    ),
    "plan restarts": ("HEALTHY", "HEALTHY --allow-unavoidable --conflicts", "LOG", "DESCRIBED --max-at-min-isr 9"),
    "plan show": ("HEALTHY PLAN", "DEGRADED PLAN"),
    "plan stage": ("HEALTHY PLAN --max-moves 5", "DEGRADED PLAN --max-moves 5"),
    "plugins check": ("rack-spread",),
    "plugins list": ("",),
    "plugins show": ("rack-spread", "simulator", "kraft", "builtin", "zookeeper", "kafka-wire"),
    "reassign cancel": ("--all ADMIN",),
    "reassign list": ("ADMIN",),
    "reassign start": ("t-0=3,4 ADMIN --journal NEW",),
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
    "whatif unregister": ("LOG --brokers 3",),
    "whatif update-features": (
        "LOG metadata.version=7", "LOG metadata.version=30", "LOG eligible.leader.replicas.version=0",
    ),
}  # fmt: skip
LINES: Final = [f"{name} {line}".strip() for name, lines in TABLES.items() for line in lines]


def make_files(folder: Path) -> dict[str, str]:
    """Write the files of ``LINES`` into ``folder``; return the paths of all by name."""
    paths: dict[str, Path | str] = {
        "HEALTHY": HEALTHY,
        "DEGRADED": DEGRADED,
        "DESCRIBED": DESCRIBED,
        "KCAT": running.CLUSTER / "broker-4-dead.kcat.json.gz",
        "KRAFT": KRAFT,
        "LOG": LOG,
        "PLAN": PLAN,
        "SCENARIO": "examples/scenarios/rolling-restart.yaml",
        "KRAFT_SCENARIO": "tests/golden-kraft/scenarios/users.yaml",
        "MISSING": "missing.yaml",
        "TOPICS": DISKS / "topics.txt",
        "LOG_DIRS": DISKS / "log-dirs.txt",
        "NEW": folder / "new",
        "COPY": shutil.copytree(LOG, folder / "copy"),
        "MOVE": folder / "MOVE.json",
        "ORDERS": folder / "ORDERS.json",
        "CONTROLLER": folder / "controller.properties",
    }
    (folder / "controller.properties").write_text(
        f"process.roles=controller\nnode.id=9\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://localhost:9093\nlog.dirs={folder}/new\n"
    )
    for name, topic, replicas in (("MOVE", "t", [3, 4]), ("ORDERS", "orders", [1, 3, 2])):
        plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]}
        (folder / f"{name}.json").write_text(json.dumps(plan))
    return {name: str(path) for name, path in paths.items()}


def words(line: str, files: Mapping[str, str]) -> list[str]:
    """The arguments of a line. Words in capitals are files, with or without an ending, or those of a cluster."""
    arguments: list[str] = []
    for word in shlex.split(line):
        name, suffix = re.fullmatch(r"([A-Z_]*)(.*)", word).groups()  # type: ignore[union-attr]
        path = files.get(name)
        arguments += map(str, _WORDS.get(word) or (word if path is None else f"{path}{suffix}",))
    return arguments
