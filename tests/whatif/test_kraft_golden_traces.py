"""Steps of golden traces played as what-ifs: the records and the partitions of Kafka 4.4's controller."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from kframe.errors import InputError
from kframe.model.events import ElectionType
from kframe.model.kraft.metadata import ClusterMetadata
from kframe.model.kraft.records import PartitionRecord
from kframe.model.kraft.views import partition_record
from kframe.scenario.kraft.format import KraftScenario, read_kraft_scenario
from kframe.scenario.kraft.runner import KraftScenarioRunner
from kframe.snapshot import Snapshot, Source
from kframe.whatif import Outcome, WhatIf
from tests.kraft.golden import GOLDEN, LARGE
from tests.kraft.golden import SCENARIOS as ALL_SCENARIOS
from tests.whatif.kraft_samples import record_counts


def _elect(whatif: WhatIf, argument: Mapping[str, Any]) -> Outcome:
    named = argument.get("partitions")
    pairs = None if named is None else [(name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in named]
    return whatif.elect(ElectionType[argument["type"].upper()], pairs)


#: The verb of a step.
VERBS: Final[Mapping[str, Callable[[WhatIf, Any], Outcome]]] = {
    "heartbeat_stop": lambda whatif, brokers: whatif.fail(brokers),
    "fence": lambda whatif, brokers: whatif.fence(brokers),
    "unfence": lambda whatif, brokers: whatif.unfence(brokers),
    "heartbeat_resume": lambda whatif, brokers: whatif.unfence(brokers),
    "elect_leaders": _elect,
    "delete_topics": lambda whatif, topics: whatif.delete(topics),
}
#: What these scenarios do besides: a broker that waited in controlled shutdown stops; topics are named by id.
OTHERS: Final = ("controlled-shutdown-waits", "delete-topics")
#: A third of the scenarios; settings of the controller's own file are not in its metadata.
SCENARIOS: Final = [
    scenario
    for path in ALL_SCENARIOS[::3]
    if path.stem not in OTHERS and not (scenario := read_kraft_scenario(path)).config
]


def golden_steps(name: str) -> list[dict[str, Any]]:
    path = next(path for path in (GOLDEN / "traces").iterdir() if path.name.split(".")[0] == name)
    content = path.read_bytes()
    steps: list[dict[str, Any]] = json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)["steps"]
    return steps


def after(scenario: KraftScenario, count: int) -> ClusterMetadata:
    """The metadata after some steps of a scenario."""
    runner = KraftScenarioRunner(replace(scenario, steps=scenario.steps[:count]))
    runner.play()
    return runner.metadata


def partitions(metadata: ClusterMetadata) -> dict[str, PartitionRecord]:
    rows = np.flatnonzero(metadata.partitions.topic >= 0).tolist()
    return {metadata.name(row): partition_record(metadata, row) for row in rows}


def compared_steps(scenario: KraftScenario) -> Iterator[str]:
    """The kinds of the steps that were compared; a step that the what-if refuses is not."""
    golden = golden_steps(scenario.name)
    for number, step in enumerate(scenario.steps):
        if step.kind not in VERBS:
            continue
        whatif = WhatIf(Snapshot.from_metadata(after(scenario, number), source=Source("kraft", "trace")))
        try:
            outcome = VERBS[step.kind](whatif, step.argument)
        except InputError:
            continue
        where = f"{scenario.name}, step {number}: {step.kind} {step.argument}"
        written = Counter(
            record["type"]
            for batch in golden[number]["batches"]
            if not batch.get("control")
            for record in batch["records"]
        )
        assert Counter(map(_type_name, Counter(record_counts(outcome)).elements())) == written, where
        assert partitions(whatif.cluster) == partitions(after(scenario, number + 1)), where
        yield step.kind


def _type_name(record: str) -> str:
    """``PARTITION_CHANGE_RECORD`` of ``PartitionChange``."""
    return re.sub(r"\B([A-Z])", r"_\1", f"{record}Record").upper()


def test_what_ifs_write_records_of_golden_traces() -> None:
    compared = Counter(
        kind for scenario in SCENARIOS if scenario.name not in LARGE for kind in compared_steps(scenario)
    )
    assert compared.keys() == VERBS.keys()
    assert compared.total() > 40


@pytest.mark.extended
def test_what_ifs_write_records_of_large_golden_traces() -> None:
    compared = Counter(kind for scenario in SCENARIOS if scenario.name in LARGE for kind in compared_steps(scenario))
    assert compared == {"heartbeat_stop": 1}
