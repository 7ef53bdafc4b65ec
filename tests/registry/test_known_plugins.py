"""A command or a URL that needs a plugin of kframe's own, which is not installed, names the plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from kframe.cli.app import announced_commands, cli
from kframe.errors import PluginError, SnapshotError
from kframe.registry.known_plugins import KNOWN_PLUGINS
from kframe.registry.registry import Registry, build_registry
from kframe.registry.specs import PortSpec
from kframe.snapshot import formats
from kframe.spark import sessions
from tests.architecture.source import ROOT

COMMANDS: Final = [(plugin, command) for plugin in KNOWN_PLUGINS for command in plugin.commands]


@pytest.fixture
def without_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the plugins: the first distribution of a name counts, and these have no entry points."""
    for plugin in KNOWN_PLUGINS:
        metadata = tmp_path / f"{plugin.distribution.replace('-', '_')}-0.1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {plugin.distribution}\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize("plugin, command", COMMANDS, ids=lambda value: value if isinstance(value, str) else "")
def test_command_of_a_plugin_that_is_not_installed_names_it(plugin: object, command: str) -> None:
    result = CliRunner().invoke(cli, [command, "--help"])
    assert result.exit_code == 2
    assert f"No such command '{command}': kframe-" in result.output
    assert "pip install 'kframe-controller[" in result.output


@pytest.mark.usefixtures("without_plugins")
def test_demo_without_plugins_names_the_extra_that_reads_the_log() -> None:
    result = CliRunner().invoke(cli, ["demo", "--partitions", "100", "--brokers", "5"])
    assert result.exit_code == 0, result.output
    assert "kframe-kraft offers it: pip install 'kframe-controller[kraft]'" in result.output
    assert "$ kframe log" not in result.output
    assert "100 partitions on 5 brokers" in result.output, "the demo goes on"


@pytest.mark.usefixtures("without_plugins")
def test_log_directory_names_the_plugin_that_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "plugin_formats", dict)
    with pytest.raises(
        SnapshotError, match=r"found metadata.log.dir of a KRaft node, expected kframe-kraft: pip install"
    ):
        formats.read_snapshot(ROOT / "examples" / "clusters" / "kafka-4.4-broker-failure")


@pytest.mark.parametrize("name", [name for plugin in KNOWN_PLUGINS for name in plugin.directory_entries], ids=str)
def test_installed_plugin_detects_a_directory_with_an_entry_that_names_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    assert formats.detect_format(tmp_path) in formats.plugin_formats()


def test_command_on_spark_without_pyspark_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli, ["spark", "validate", "nowhere"])
    assert result.exit_code == 2
    expected = "pyspark: no such module, expected the package: pip install 'kframe-controller[spark]'"
    assert result.output == f"error: {expected}\n"


@pytest.mark.usefixtures("without_plugins")
@pytest.mark.parametrize(
    "url, extra", [("kafka://h:1", "live"), ("kraft://h:1", "kraft"), ("zookeeper://h:1", "zookeeper")]
)
def test_url_of_a_plugin_that_is_not_installed_names_it(url: str, extra: str) -> None:
    with pytest.raises(PluginError, match=rf"offers it: pip install 'kframe-controller\[{extra}\]'"):
        build_registry().open_cluster(url)


@pytest.mark.usefixtures("without_plugins")
def test_scheme_of_an_unknown_plugin_has_no_hint() -> None:
    with pytest.raises(PluginError, match=r"^no store for the URL scheme 'etcd'; there are: memory$"):
        build_registry().open_store("etcd:here")


def test_known_plugins_list_what_the_plugins_offer() -> None:
    registry: Registry = build_registry()
    offered = {
        (plugin.distribution.partition(" ")[0], spec.scheme)
        for plugin in registry.plugins
        for spec in plugin.offers
        if isinstance(spec, PortSpec) and plugin.distribution.startswith("kframe-") and " " in plugin.distribution
    }
    assert offered == {(plugin.distribution, scheme) for plugin in KNOWN_PLUGINS for scheme in plugin.schemes}
    assert set(announced_commands()) == {command for _, command in COMMANDS}
