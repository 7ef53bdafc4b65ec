"""Leader selectors and their options from the properties file of ``kframe controller run``."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from kframe.cli.output import BadInput
from kframe.cli.run import RECORDING, NetworkSettings, assemble, summary
from kframe.cli.selectors import configured_selectors, selectors_text
from kframe.embedded import MemoryEnsemble
from kframe.errors import KframeError
from kframe.model.ids import ElectionKind
from kframe.plugin import Option, SelectorSpec, Tier, hookimpl
from kframe.registry.registry import Registry, build_registry
from kframe.settings.settings import Settings
from kframe.testing.clusters import cluster_of
from tests.cli.running import kframe

OPTIONS = (
    Option("racks", int, 2, "Racks to prefer."),
    Option("strict", bool, False, "Whether to refuse others."),
    Option("share", float, 0.5, "Share of leaders."),
    Option("zone", str, "a", "The zone to prefer."),
)


class Plugin:
    """Two selectors with options, and one for the same elections as the first."""

    @hookimpl
    def kframe_leader_selectors(self) -> list[SelectorSpec]:
        def make(**_options: Any) -> Any:
            return lambda election: None

        return [
            SelectorSpec("most-racks", Tier.SCALAR, make, (ElectionKind.OFFLINE,), "Most racks.", OPTIONS),
            SelectorSpec("least-led", Tier.SCALAR, make, (ElectionKind.OFFLINE,), "Least led."),
            SelectorSpec("calm", Tier.SCALAR, make, (ElectionKind.PREFERRED, ElectionKind.REASSIGN), "Calm.", OPTIONS),
        ]


def registry() -> Registry:
    return build_registry(extra=[Plugin()], allowed=())


def gathered(tmp_path: Path, text: str, environment: dict[str, str] | None = None) -> Settings:
    file = tmp_path / "server.properties"
    file.write_text(text)
    return Settings.gather({}, environment or {}, file)


def test_file_names_selectors_and_options(tmp_path: Path) -> None:
    settings = gathered(
        tmp_path,
        "kframe.leader.selectors=most-racks, calm\nkframe.leader.selectors.most-racks.racks=3\n"
        "kframe.leader.selectors.most-racks.strict=true\nkframe.leader.selectors.calm.zone=b\n",
    )
    chosen = configured_selectors(settings, registry(), ())
    assert {kind.name: selector.name for kind, selector in chosen.by_kind.items()} == {
        "OFFLINE": "most-racks",
        "PREFERRED": "calm",
        "REASSIGN": "calm",
    }
    assert selectors_text(chosen.records) == (
        "most-racks (racks=3, strict=True, share=0.5, zone=a) for OFFLINE; "
        "calm (racks=2, strict=False, share=0.5, zone=b) for PREFERRED, REASSIGN"
    )


@pytest.mark.parametrize(
    ("option", "environment", "name"),
    [
        ((), {}, "most-racks"),
        ((), {"KFRAME_LEADER_SELECTORS": "least-led"}, "least-led"),
        (("least-led",), {}, "least-led"),
        (("most-racks",), {"KFRAME_LEADER_SELECTORS": "least-led"}, "most-racks"),
    ],
)
def test_option_wins_over_environment_and_file(
    tmp_path: Path, option: tuple[str, ...], environment: dict[str, str], name: str
) -> None:
    settings = gathered(tmp_path, "kframe.leader.selectors=most-racks\n", environment)
    assert configured_selectors(settings, registry(), option).records[0].name == name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kframe.leader.selectors=most-rack\n", "server.properties:1 key kframe.leader.selectors: no leader"),
        ("kframe.leader.selectors=most-racks,least-led\n", "are both for OFFLINE elections"),
        ("kframe.leader.selectors.most-rack.racks=3\n", "leader selector 'most-rack', expected 'most-racks' perhaps"),
        ("kframe.leader.selectors.most-racks.rack=3\n", "expected one of racks, strict, share, zone"),
        ("kframe.leader.selectors.least-led.rack=3\n", "option 'rack' of selector least-led, expected no options"),
        ("kframe.leader.selectors.most-racks.racks=many\n", "most-racks.racks: found 'many', expected int"),
        ("kframe.leader.selectors.most-racks.racks=\\uff13\n", "expected int"),
        ("kframe.leader.selectors.most-racks.racks=1_0\n", "expected int"),
        ("kframe.leader.selectors.most-racks.strict=yes\n", "found 'yes', expected bool"),
        ("kframe.leader.selectors.most-racks.share=half\n", "found 'half', expected float"),
        ("kframe.leader.selectors.racks=3\n", "found leader selector ''"),
    ],
)
def test_unusable_setting_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises((BadInput, KframeError), match=re.escape(problem)):
        configured_selectors(gathered(tmp_path, text), registry(), ())


def test_option_of_a_selector_that_is_not_in_force_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = gathered(tmp_path, "kframe.leader.selectors=calm\nkframe.leader.selectors.most-racks.racks=3\n")
    with caplog.at_level(logging.WARNING):
        assert selectors_text(configured_selectors(settings, registry(), ()).records).startswith("calm")
    assert "has no effect: selector most-racks is not in force" in caplog.text


def test_start_of_the_controller_names_selectors(tmp_path: Path) -> None:
    settings = gathered(tmp_path, "broker.id=1000\nzookeeper.connect=zk:2181\nkframe.leader.selectors=least-led\n")
    chosen = configured_selectors(settings, registry(), ())
    store = MemoryEnsemble.from_cluster(cluster_of({}, (1,))).connect()
    network = NetworkSettings(RECORDING, (), None)
    with assemble(settings, store, network, registry(), selectors=chosen) as controller:
        assert summary(settings, controller, network, chosen).endswith("leader selectors least-led for OFFLINE")


def test_controller_run_refuses_a_selector_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("zookeeper.connect=a:1\nbroker.id=5\nkframe.leader.selectors=nosuch\n")
    result = kframe("controller", "run", "--config", file, "--transport", "recording:")
    assert result.exit_code == 2
    assert f"{file}:3 key kframe.leader.selectors: no leader selector 'nosuch'" in result.stderr
