"""docs/tutorial/live-controller.md, run from nothing: a new selector elects a leader in a live controller."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kframe.testing.waiting import until
from tests.docs.blocks import Block, blocks, steps
from tests.docs.run_page import SHELL, Shell, prepare_folder, run_step
from verification.zookeeper.handover import ClusterFixture
from verification.zookeeper.servers import HOST, free_ports

PAGE: Final = Path(__file__).parents[4] / "docs" / "tutorial" / "live-controller.md"
#: The environment of the tests stays as it is: pip installs into a folder of the test, without network.
INSTALL: Final = (
    "python -m pip install --quiet --no-deps --no-build-isolation --target installed ./kframe-last-replica && "
    'export PYTHONPATH="$PWD/installed"'
)
TOPIC: Final = re.compile(r"kafka-topics\.sh .*--create --topic (\S+) --replica-assignment ([\d:]+)$")
STATUS: Final = "kframe controller status --zookeeper {} -q"
KILL: Final = "kill -KILL BROKER_1_PID"


def run_tutorial(kafka: ClusterFixture, folder: Path) -> None:
    """Run the commands of the page in order.

    The fixture creates the topic, and kills broker 1 and ends its session.
    """
    (port,) = free_ports(1)
    replacements = {
        "zk1:2181/kafka": kafka.cluster.zookeeper,
        "kframe1:9092": f"{HOST}:{port}",
        "broker2:9092": kafka.cluster.brokers[2].address,
        "pip install ./kframe-last-replica": INSTALL,
    }
    with Shell(folder) as shell:
        for block in blocks(PAGE):
            text = block.text
            for shown, actual in replacements.items():
                text = text.replace(shown, actual)
            current = Block(block.page, block.line, block.language, text)
            if current.file is not None:
                (folder / current.file).write_text(text)
                continue
            assert block.language in SHELL
            for step in steps(current):
                if topic := TOPIC.match(step.command):
                    kafka.create(topic[1], [[int(broker) for broker in topic[2].split(":")]])
                elif step.command == KILL:
                    kafka.cluster.lose(1, kafka.client)
                    assert until(lambda: (kafka.state("tutorial") or {}).get("leader", 1) != 1), (
                        folder / "kframe.log"
                    ).read_text()
                else:
                    if step.command == STATUS.format(kafka.cluster.zookeeper):
                        assert until(lambda: kafka.controller()[0] >= 0)
                    run_step(shell, step, block.location)


def test_selector_of_a_new_plugin_elects_a_leader_in_a_live_controller(kafka: ClusterFixture, tmp_path: Path) -> None:
    prepare_folder(tmp_path)
    try:
        run_tutorial(kafka, tmp_path)
        assert kafka.leader_and_isr("tutorial") == (3, [2, 3])
    finally:
        kafka.cluster.start()
    assert until(lambda: kafka.leader_and_isr("tutorial") == (3, [2, 3, 1]))
