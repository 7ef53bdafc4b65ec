"""What a snapshot leaves open is printed, and can be stated."""

from __future__ import annotations

import json

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
