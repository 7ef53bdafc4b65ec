"""Every hook's docstring has a complete, working plugin, and every hook is called. Plugins import from one module."""

from __future__ import annotations

import inspect
import textwrap
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kframe.errors import PluginError
from kframe.model.ids import ElectionKind
from kframe.plugin import FORBIDDEN, KframeHooks
from kframe.registry.registry import Registry, build_registry
from kframe.testing.placement_checks import random_placement, run_placement_checks
from kframe.testing.selector_checks import run_checks

#: Hooks that offer a factory for the URLs of a scheme: scheme, factory and sentence of the example.
SCHEMES = {
    "kframe_stores": ("etcd", "kframe_etcd.store:open_store", "etcd 3.5 and later."),
    "kframe_transports": ("pcap", "kframe_pcap:Writer", "Writes requests to a file."),
    "kframe_clusters": ("etcd", "kframe_etcd.live:open_cluster", "Clusters in etcd."),
    "kframe_admins": ("rest", "kframe_rest:open_admin", "Kafka's REST proxy."),
    "kframe_servers": ("rest", "kframe_rest:make_server", "JSON over HTTP."),
    "kframe_controllers": ("raft", "kframe_raft:make_node", "A quorum of its own."),
}


def example(hook: str) -> ModuleType:
    """Return the plugin in a hook's docstring as a module."""
    docstring = inspect.getdoc(getattr(KframeHooks, hook))
    assert docstring, "every hook is documented"
    before, separator, code = docstring.partition("A complete plugin::")
    assert separator, "every hook shows a complete plugin"
    assert before.strip(), "and says what it is for"
    module = ModuleType(f"example_of_{hook}")
    exec(compile(textwrap.dedent(code), hook, "exec"), vars(module))
    return module


def registry_of(hook: str) -> Registry:
    registry = build_registry(extra=[example(hook)], allowed=())
    assert registry.broken == ()
    return registry


@pytest.mark.parametrize("hook", SCHEMES)
def test_factory_of_url_scheme(hook: str) -> None:
    scheme, factory, doc = SCHEMES[hook]
    spec = getattr(registry_of(hook), hook.removeprefix("kframe_"))[scheme]
    assert (spec.factory, spec.doc) == (factory, doc)


def test_kframe_leader_selectors() -> None:
    registry = registry_of("kframe_leader_selectors")
    assert registry.selectors["lowest-id"].kinds == (ElectionKind.OFFLINE,)
    findings = run_checks(lambda: registry.selector("lowest-id"), (ElectionKind.OFFLINE,))
    assert [finding.problem for finding in findings if finding.problem] == []


def test_kframe_cost_terms() -> None:
    registry = registry_of("kframe_cost_terms")
    findings = run_placement_checks(lambda: registry.cost_term("audit-rack"))
    assert [finding.problem for finding in findings if finding.problem] == []
    assert FORBIDDEN in registry.cost_term("audit-rack").costs(random_placement(1))


def test_kframe_goals() -> None:
    registry = registry_of("kframe_goals")
    findings = run_placement_checks(lambda: registry.goal("followers"))
    assert [finding.problem for finding in findings if finding.problem] == []


def test_kframe_plugin_checks() -> None:
    registry = registry_of("kframe_plugin_checks")
    assert registry.checks["documented"].run(registry.stores["memory"], "memory:").problem is None


def test_kframe_broker_models() -> None:
    spec = registry_of("kframe_broker_models").broker_models["tiered"]
    assert (spec.factory, spec.doc) == ("kframe_tiered:Replication", "Tiered storage.")
    with pytest.raises(PluginError, match="tiered: kframe_tiered:Replication cannot be imported"):
        spec.make()


def test_kframe_snapshot_formats() -> None:
    spec = registry_of("kframe_snapshot_formats").snapshot_formats["xml"]
    assert spec.detects(None, b"<cluster>")
    assert not spec.detects(None, b"{}")
    with pytest.raises(PluginError, match="xml: kframe_xml:read cannot be imported"):
        spec.read_snapshot(None, None, None)
    with pytest.raises(PluginError, match="snapshot format xml: it is read, but not written"):
        spec.write_snapshot(None, None, force=False)


def test_kframe_documents() -> None:
    document = registry_of("kframe_documents").documents["greeting/v1"]
    assert (document.doc, document.type().__struct_fields__) == ("A greeting.", ("text",))


def test_kframe_register_commands() -> None:
    cli = click.Group()
    registry_of("kframe_register_commands").register_commands(cli)
    assert CliRunner().invoke(cli, ["greet"]).output == "hello\n"


def test_kframe_observers() -> None:
    observer: Any = registry_of("kframe_observers").observer("counter")
    observer.stepped(None, [])
    assert observer.steps == 1
