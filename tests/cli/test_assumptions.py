"""What a snapshot leaves open is printed, and can be stated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import CLUSTER, whatif

KCAT = CLUSTER / "healthy.kcat.json.gz"
STATED = "min.insync.replicas: 2 for every topic, as stated"


@pytest.mark.parametrize("verb", [("fail", KCAT, "--brokers", "2"), ("sweep", KCAT, "--depth", "1")])
def test_min_insync_replicas_can_be_stated_where_topic_settings_are_unknown(verb: tuple[object, ...]) -> None:
    unknown = whatif(*verb, "--fail-on", "under-min-isr")
    assert (unknown.exit_code, "found a snapshot without topic settings" in unknown.output) == (2, True)
    stated = whatif(*verb, "--fail-on", "under-min-isr", "--config", "min.insync.replicas=2", "-o", "json")
    assert stated.exit_code == 3, stated.output
    document = json.loads(stated.stdout)
    assert STATED in document["assumptions"]
    assert document["findings"]["under-min-isr"] > 0


def test_assumptions_are_complete_in_wide_output_only() -> None:
    folded, wide = (whatif("fail", KCAT, "--brokers", "2", "-o", output).stdout for output in ("table", "wide"))
    assert len([line for line in folded.splitlines() if " facts not in this input: " in line]) == 1
    assert "assumption" not in folded
    assert len([line for line in wide.splitlines() if line.startswith("assumption: ")]) > 5


@pytest.mark.parametrize("racks, is_listed", [(6, False), (5, True)])
def test_facts_that_the_user_states_for_all_brokers_are_not_missing(
    tmp_path: Path, racks: int, is_listed: bool
) -> None:
    rack_map = tmp_path / "racks.csv"
    rack_map.write_text("broker,rack\n" + "".join(f"{broker},r{broker}\n" for broker in range(1, racks + 1)))
    stated = ("--rack-map", rack_map, "--config", "min.insync.replicas=2")
    folded, wide = (
        whatif("fail", KCAT, "--brokers", "2", *stated, "-o", output).stdout for output in ("table", "wide")
    )
    line = " ".join(folded.split()).partition(" not in this input: ")[2]
    assert ("brokers.rack" in line, "min.insync.replicas" in line) == (is_listed, False)
    assert f"assumption: brokers.rack: from {rack_map}" in wide
    assert f"assumption: {STATED}" in wide


ELR = (
    "Topic: t\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2,4\tIsr: 1,2\tElr: 4\tLastKnownElr: \n"
)
RULE = "kafka-topics lists no brokers; those that lead or are in a led partition's ISR are live"


@pytest.mark.parametrize(
    "text, broker, message",
    [
        (ELR, 4, f"broker 4, taken as fenced ({RULE}), expected an unfenced broker: 1, 2"),
        (ELR, 9, "broker 9, expected an unfenced broker: 1, 2"),
        (
            ELR.replace("Elr: 4\tLastKnownElr: ", "Elr: N/A\tLastKnownElr: N/A"),
            4,
            f"broker 4, taken as unregistered ({RULE}), expected a registered broker: 1, 2",
        ),
    ],
)
def test_error_says_why_a_broker_of_the_input_is_not_live(tmp_path: Path, text: str, broker: int, message: str) -> None:
    described = tmp_path / "topics.txt"
    described.write_text(text)
    result = whatif("fail", described, "--brokers", f"2,{broker}")
    assert result.exit_code == 2
    assert f"brokers: found {message}" in result.stderr
