"""Rack maps: their forms, malformed ones, and snapshots with the racks of a map."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kframe.errors import InputError
from kframe.snapshot import Snapshot, read_snapshot
from kframe.snapshot.rack_map import read_fleet_rack_map, read_rack_map, with_racks
from tests.architecture.source import ROOT

CLUSTER: Final = ROOT / "examples" / "clusters" / "kafka-3.9.1-six-brokers"
RACKS: Final = {1: "rack-0", 2: "rack-1", 3: "rack-2", 4: "rack-0", 5: "rack-1", 6: "rack-2"}


def described() -> Snapshot:
    return read_snapshot(CLUSTER / "healthy.topics-describe.txt.gz")


@pytest.mark.parametrize(
    "text",
    [
        "broker,rack\n4,b\n1,a\n",
        "\ufeffbroker,rack\r\n1, a\r\n\r\n4,b",
        '{"4": "b", "1": "a"}',
        '[{"broker": 4, "rack": "b"}, {"rack": "a", "broker": "1"}]',
    ],
)
def test_every_form_has_the_same_racks(text: str, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(text)
    assert list(read_rack_map(str(tmp_path / "racks")).items()) == [(1, "a"), (4, "b")]


@pytest.mark.parametrize(
    "text",
    [
        "cluster,broker,rack\neast,1,a\n,2,b\n west ,2,c\n",
        json.dumps(
            [
                {"cluster": "east", "broker": 1, "rack": "a"},
                {"broker": 2, "rack": "b"},
                {"cluster": "west", "broker": 2, "rack": "c"},
            ]
        ),
    ],
)
def test_entries_of_a_fleet_apply_to_a_cluster_or_to_every_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(text)
    racks = read_fleet_rack_map(str(tmp_path / "racks"))
    assert (racks.of("east"), racks.of("west"), racks.of("north")) == ({1: "a", 2: "b"}, {2: "c"}, {2: "b"})
    with pytest.raises(InputError):
        read_rack_map(str(tmp_path / "racks"))


@pytest.mark.parametrize(
    ("text", "racks"),
    [
        ("broker,rack\n1,a\n", {1: "a"}),
        ('{"1": "a"}', {1: "a"}),
        ('{"east": {"1": "a"}}', {1: "a"}),
        ('{"west": {"1": "a"}, "east": {}}', {}),
        ("{}", {}),
    ],
)
def test_every_form_of_a_fleet(text: str, racks: dict[int, str], tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(text)
    assert read_fleet_rack_map(str(tmp_path / "racks")).of("east") == racks


@pytest.mark.parametrize(
    ("text", "where", "actual"),
    [
        ("cluster,broker\n", ":1", "cluster,broker"),
        ("cluster,broker,rack\neast,1\n", ":2", "2 columns"),
        ("cluster,broker,rack\neast,1,a\neast,1,b\n", ":3", "broker 1 of cluster east twice"),
        ('[{"cluster": 5, "broker": 1, "rack": "a"}]', "[0]", "cluster 5"),
        ('{"east": {"1": "a"}, "2": "b"}', "", "broker 'east'"),
    ],
)
def test_malformed_map_of_a_fleet_is_refused_by_location(text: str, where: str, actual: str, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(text)
    with pytest.raises(InputError) as refused:
        read_fleet_rack_map(str(tmp_path / "racks"))
    assert refused.value.where == f"{tmp_path / 'racks'}{where}"
    assert actual in refused.value.actual


@pytest.mark.parametrize(
    ("text", "where", "actual"),
    [
        ("broker;rack\n1;a\n", ":1", "broker;rack"),
        ("broker,rack\n1,a\nx,b\n", ":3", "broker 'x'"),
        ("broker,rack\n1,a\n1,b\n", ":3", "broker 1 twice"),
        ("broker,rack\n1,\n", ":2", "rack '' of broker 1"),
        ("broker,rack\n1,a,b\n", ":2", "3 columns"),
        ("broker,rack\n9999999999,a\n", ":2", "broker '9999999999'"),
        ('{"1": "a", "1": "a"}', "", "broker 1 twice"),
        ('{"1": 2}', "", "rack 2 of broker 1"),
        ('{"-1": "a"}', "", "broker '-1'"),
        ('{"1": "a"', "", "malformed JSON"),
        ('[{"broker": 1}]', "[0]", "broker"),
        ('[{"broker": true, "rack": "a"}]', "[0]", "broker True"),
        ("[1]", "[0]", "1"),
        ("[" * 100_000, "", "malformed JSON"),
    ],
)
def test_malformed_map_is_refused_by_location(text: str, where: str, actual: str, tmp_path: Path) -> None:
    (tmp_path / "racks").write_text(text)
    with pytest.raises(InputError) as refused:
        read_rack_map(str(tmp_path / "racks"))
    assert refused.value.where == f"{tmp_path / 'racks'}{where}"
    assert actual in refused.value.actual


def test_text_with_a_map_has_the_racks_of_a_dump() -> None:
    dump = read_snapshot(CLUSTER / "healthy.zookeeper.jsonl.gz")
    snapshot = with_racks(described(), RACKS, "racks.csv")
    assert [facts.rack for facts in snapshot.brokers] == [facts.rack for facts in dump.brokers]
    assert "brokers.rack: from racks.csv, as stated" in snapshot.assumptions
    assert with_racks(dump, RACKS, "racks.csv").brokers == dump.brokers


def test_brokers_without_an_entry_are_named() -> None:
    snapshot = with_racks(described(), {1: "a", 9: "b"}, "racks.csv")
    assert [facts.rack for facts in snapshot.brokers] == ["a", None, None, None, None, None]
    assert "brokers.rack: from racks.csv, which does not have brokers 2, 3, 4, 5, 6" in snapshot.assumptions


def test_map_that_contradicts_the_snapshot_or_knows_no_broker_is_refused() -> None:
    with pytest.raises(InputError, match="broker 2 in rack-7, expected rack-1, its rack in the snapshot"):
        with_racks(read_snapshot(CLUSTER / "healthy.zookeeper.jsonl.gz"), {2: "rack-7"}, "racks.csv")
    with pytest.raises(InputError, match="no broker of the snapshot in 1 entry"):
        with_racks(described(), {70: "a"}, "racks.csv")


def test_map_gives_a_kraft_registration_its_rack() -> None:
    from tests.whatif.kraft_samples import metadata_with, partition, with_broker_states

    snapshot = with_broker_states(metadata_with((partition(0, (1, 2), (1, 2)),), brokers=7))
    assert all(facts.rack is None for facts in snapshot.brokers)
    racks = {broker_id: f"rack-{broker_id}" for broker_id in range(1, 8)}
    mapped = with_racks(snapshot, racks, "racks.csv")
    registrations = mapped.to_metadata().brokers.registrations
    assert {broker_id: stored.rack for broker_id, stored in registrations.items()} == racks
    assert replace(mapped, provenance={}).digest() != snapshot.digest()
