"""Start three real brokers and kframe as their controller, kill a broker, start it again, and write the page."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kframe.pages.parts import FactsPart, Heading, PageContent, Part, TablePart, TextPart
from kframe.pages.render import document
from kframe.testing.waiting import wait_until
from verification.kafka_wire.broker_metadata import metadata_of
from verification.kraft.demo.timeline import (
    Step,
    leaders_at,
    log_records,
    seconds,
    spans,
    timeline_part,
    took_over,
)
from verification.kraft.kafka_nodes import CLUSTER_ID, KraftCluster, KraftNode, KraftOptions
from verification.kraft.kafka_tools import KafkaTools
from verification.zookeeper.commands import RunningCommand, invoke

PAGE: Final = Path("build/demo-kraft.html")
TOPIC, KILLED = "orders", 2
_SETTINGS: Final = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}


def main() -> None:
    """Write the page, and print the steps."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        steps, directory = run(Path(folder), stack)
        content = page(steps, directory)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(content)
    for at, what in seconds(steps):
        sys.stdout.write(f"{at:>6} s  {what}\n")
    sys.stdout.write(f"\nThe page: {PAGE}\n")


def run(folder: Path, stack: ExitStack) -> tuple[list[Step], Path]:
    """Play the failure. Returns the steps, and the directory of the metadata log."""
    say("fetching Kafka's classes, the first time")
    options = KraftOptions(brokers=3, controllers=1, combined=False, settings=_SETTINGS)
    cluster = KraftCluster(folder / "nodes", options)
    tools = stack.enter_context(KafkaTools(folder / "tools"))
    (controller,) = cluster.controllers.values()
    shutil.rmtree(controller.log_dirs[0])
    formatted = invoke("kraft", "format", "-t", CLUSTER_ID, "-c", controller.config_path)
    assert formatted.returncode == 0, formatted.stderr
    steps = [Step(now(), "kframe starts")]
    leading = RunningCommand(folder / "kframe", "controller", "run", "--config", controller.config_path)
    stack.callback(leading.kill)
    leading.start()
    stack.callback(cluster.kill)
    say("starting three brokers")
    for broker in cluster.brokers.values():
        broker.start()
    for broker in cluster.brokers.values():
        broker.await_started()
    steps.append(Step(now(), "three brokers serve"))
    say(f"creating topic {TOPIC}, and killing broker {KILLED}")
    topic = ("--create", "--topic", TOPIC, "--partitions", 6, "--replication-factor", 3)
    cluster.admin(tools, "kafka-topics", *topic)
    steps.append(Step(now(), f"topic {TOPIC} has 6 partitions of 3 replicas"))
    fail(cluster.brokers, steps)
    assert leading.stop() == 0, leading.log
    return steps, controller.log_dirs[0]


def fail(brokers: dict[int, KraftNode], steps: list[Step]) -> None:
    """Kill a broker, wait for its successors, and start it again."""
    survivor, killed = brokers[1], brokers[KILLED]
    wait_until(lambda: all(len(isr) == 3 for _, isr in states(survivor)))
    killed.kill()
    steps.append(Step(now(), f"broker {KILLED} is killed"))
    wait_until(lambda: all(leader not in (KILLED, -1) and KILLED not in isr for leader, isr in states(survivor)))
    steps.append(Step(now(), "broker 1 knows the new leaders"))
    say(f"starting broker {KILLED} again")
    killed.start()
    killed.await_started()
    steps.append(Step(now(), f"broker {KILLED} serves again"))
    wait_until(lambda: all(len(isr) == 3 for _, isr in states(survivor)))
    steps.append(Step(now(), "all replicas are in sync"))


def states(broker: KraftNode) -> list[tuple[int, list[int]]]:
    """Leader and ISR of each partition of the topic, as a broker knows them."""
    known = metadata_of(broker.address)[2]
    return [(leader, isr) for name, (leader, isr, _) in known.items() if name.startswith(f"{TOPIC}-")]


def page(steps: list[Step], directory: Path) -> str:
    """The page about the steps and the metadata log. Adds to the steps when kframe elected the leaders."""
    partitions = spans(log_records(directory, TOPIC), steps[-1].at)
    killed_at = next(step.at for step in steps if "killed" in step.what)
    elected_at = took_over(partitions, KILLED, killed_at)
    assert elected_at is not None
    steps.append(Step(elected_at, f"kframe ends the session of broker {KILLED}, and elects leaders"))
    steps.sort()
    explained = next(name for name, known in partitions.items() if any(span.leader == KILLED for span in known))
    moment = elected_at.isoformat().replace("+00:00", "Z")
    why = invoke("log", "why", directory, explained, "--time", moment)
    rows = [{"seconds": at, "step": what} for at, what in seconds(steps)]
    marks = ((killed_at, "killed"), (elected_at, "elected"))
    facts = [
        ("brokers", f"three unmodified ones of Kafka {KraftOptions().version}"),
        ("controller", "kframe, the only one"),
        ("killed", f"broker {KILLED}"),
    ]
    parts: list[Part] = [
        TablePart("what happened", ("seconds", "step"), rows, len(rows)),
        timeline_part(partitions, marks),
        *(
            _leaders(f"leaders {when}", leaders_at(partitions, at))
            for when, at in (("before", killed_at), ("after", elected_at))
        ),
        TextPart(f"why {explained} has its leader", why.stdout),
    ]
    return document(PageContent(Heading("Kafka brokers led by kframe", FactsPart(facts)), parts))


def _leaders(title: str, rows: list[dict[str, Any]]) -> TablePart:
    return TablePart(title, tuple(rows[0]), rows, len(rows))


def now() -> datetime:
    """The time."""
    return datetime.now(UTC)


def say(text: str) -> None:
    """Tell what goes on, on standard error."""
    sys.stderr.write(f"{text} ...\n")


if __name__ == "__main__":
    main()
