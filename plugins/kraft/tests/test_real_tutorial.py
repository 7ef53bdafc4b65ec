"""docs/tutorial/kafka-4-led-by-kframe.md, run from nothing with three real brokers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from kframe.testing.waiting import wait_until
from tests.docs.blocks import Block, blocks, steps
from tests.docs.run_page import SHELL, Shell, prepare_folder, run_step
from verification.kafka_wire.broker_metadata import metadata_of
from verification.kraft.kafka_nodes import KraftCluster, KraftOptions
from verification.kraft.kafka_tools import KafkaTools

PAGE: Final = Path(__file__).parents[3] / "docs" / "tutorial" / "kafka-4-led-by-kframe.md"
SETTINGS: Final = {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "500"}
TOPIC: Final = re.compile(r"kafka-topics\.sh .*--create --topic (\S+) --replica-assignment ([\d:]+)$")
STORAGE: Final = "kafka-storage.sh format -t a2ZyYW1lLWtyYWZ0LXRlc3 -c broker-N.properties"
START: Final = "kafka-server-start.sh -daemon broker-N.properties"
KILL: Final = "kill -KILL BROKER_2_PID"
KAFKAS: Final = "kafka-server-start.sh -daemon controller.properties"


class Tutorial:
    """The commands of the page on a cluster, which formats, starts and kills the brokers."""

    def __init__(self, folder: Path, cluster: KraftCluster, tools: KafkaTools) -> None:
        self.folder = folder
        self.cluster = cluster
        self.tools = tools
        (self.controller,) = cluster.controllers.values()

    def run(self) -> None:
        """Run all blocks in order."""
        with Shell(self.folder) as shell:
            for block in blocks(PAGE):
                text = block.text.replace("controller1:9093", self.controller.controller_address)
                current = Block(block.page, block.line, block.language, text)
                if current.file is not None:
                    (self.folder / current.file).write_text(text)
                    continue
                assert block.language in SHELL
                for step in steps(current):
                    if not self._acted(step.command):
                        run_step(shell, step, block.location)

    def _acted(self, command: str) -> bool:
        """Whether a command is one of Kafka's, which the cluster does."""
        if topic := TOPIC.match(command):
            arguments = ("--create", "--topic", topic[1], "--replica-assignment", topic[2])
            self.cluster.admin(self.tools, "kafka-topics", *arguments)
            wait_until(lambda: f"{topic[1]}-0" in metadata_of(self.cluster.brokers[1].address)[2])
        elif command == START:
            for broker in self.cluster.brokers.values():
                broker.start()
            for broker in self.cluster.brokers.values():
                broker.await_started()
        elif command == KILL:
            self.cluster.brokers[2].kill()
            wait_until(lambda: self.leader() == 3)
        elif command == KAFKAS:
            self._start_kafkas_controller()
        else:
            return command == STORAGE
        return True

    def _start_kafkas_controller(self) -> None:
        """Start it on the directory of the page. The broker returns, and gets the leadership by its order."""
        (data,) = self.controller.log_dirs
        data.rename(data.with_name("unused"))
        data.symlink_to(self.folder / "metadata")
        self.controller.start()
        self.controller.await_started()
        self.cluster.brokers[2].start()
        self.cluster.brokers[2].await_started()

    def leader(self) -> int:
        """The leader of the topic, as broker 1 knows it."""
        return metadata_of(self.cluster.brokers[1].address)[2]["tutorial-0"][0]


@pytest.mark.real
@pytest.mark.extended
def test_brokers_are_led_from_the_first_format_to_the_hand_over(tmp_path: Path) -> None:
    prepare_folder(tmp_path)
    options = KraftOptions(brokers=3, controllers=1, combined=False, settings=SETTINGS)
    cluster = KraftCluster(tmp_path / "nodes", options)
    with KafkaTools(tmp_path / "tools") as tools:
        tutorial = Tutorial(tmp_path, cluster, tools)
        try:
            tutorial.run()
            wait_until(lambda: set(metadata_of(cluster.brokers[1].address)[2]["tutorial-0"][1]) == {1, 2, 3})
            assert tutorial.leader() == 3
        finally:
            cluster.kill()
