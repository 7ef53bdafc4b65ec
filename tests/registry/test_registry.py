"""Discovery, loading and names of plugins: conflicts are errors, and a broken plugin does not affect others."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from kframe.core.selectors.kafka_selectors import SHIPPED, FirstInSync
from kframe.errors import ConfigError, PluginError
from kframe.model.ids import ElectionKind
from kframe.plugin import hookimpl
from kframe.ports.store import Store
from kframe.ports.transport import Transport
from kframe.registry.loading import Plugin
from kframe.registry.registry import Registry, build_registry
from kframe.registry.scalar import ScalarSelector
from kframe.registry.sources import MODULE_PREFIX, PluginSource
from kframe.registry.specs import ClusterSpec, ObserverSpec, Option, SelectorSpec, StoreSpec, Tier, TransportSpec

OFFLINE = (ElectionKind.OFFLINE,)


def nothing_for(url: str) -> None:
    """A factory that is never called."""


def selector_spec(name: str, kinds: tuple[ElectionKind, ...] = OFFLINE, **changes: Any) -> SelectorSpec:
    fields: dict[str, Any] = {"name": name, "tier": Tier.BULK, "factory": lambda: FirstInSync(name), "kinds": kinds}
    return SelectorSpec(doc=f"{name}.", **fields | changes)


def plugin(name: str, **hooks: Callable[..., Any]) -> type:
    """Return a plugin with these hooks."""
    return type(name, (), {hook: staticmethod(hookimpl(function)) for hook, function in hooks.items()})


def selectors(name: str, *specs: Any) -> type:
    return plugin(name, kframe_leader_selectors=lambda: list(specs))


def build(*extra: object, **settings: Any) -> Registry:
    """Return a registry without any installed plugin."""
    return build_registry(extra=extra, allowed=(), **settings)


def state_of(registry: Registry, name: str) -> Plugin:
    (state,) = [plugin for plugin in registry.plugins if plugin.name == name]
    return state


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Install a distribution with entry points in group kframe, and optionally a module."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(distribution: str, entry_points: dict[str, str], **modules: str) -> None:
        info = tmp_path / f"{distribution.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        lines = [f"{name} = {value}" for name, value in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[kframe]", *lines]) + "\n")
        for name, text in modules.items():
            (tmp_path / f"{name}.py").write_text(text)

    return install


PLUGIN_TEXT = """
from kframe.plugin import ElectionKind, SelectorSpec, Tier, hookimpl

@hookimpl
def kframe_leader_selectors():
    return [SelectorSpec("{0}", Tier.SCALAR, lambda: (lambda election: None), (ElectionKind.OFFLINE,), "Nobody.")]
"""


def test_kframe_s_own_offers() -> None:
    registry = build()
    assert list(registry.selectors) == [*(selector.name for selector in SHIPPED), "avoid-brokers", "prefer-racks"]
    for selector, kinds in SHIPPED.items():
        assert registry.selector(selector.name) is selector
        assert registry.selectors[selector.name].kinds == kinds
    assert isinstance(registry.open_store("memory:"), Store)
    for scheme in registry.transports:
        assert isinstance(registry.open_transport(f"{scheme}:"), Transport)
    assert state_of(registry, "builtin").source is PluginSource.BUILTIN
    assert registry.broken == ()


def test_entry_point_is_loaded_only_when_a_registry_is_built(install: Callable[..., None]) -> None:
    install("kframe-nobody", {"nobody": "plugin_without_offers"}, plugin_without_offers=PLUGIN_TEXT.format("nobody"))
    assert "plugin_without_offers" not in sys.modules
    registry = build_registry(allowed=["nobody"])
    assert "plugin_without_offers" in sys.modules
    assert state_of(registry, "nobody").distribution == "kframe-nobody 1.2"
    assert isinstance(registry.selector("nobody"), ScalarSelector)


@pytest.mark.parametrize("settings", [{"disabled": ["left-out"]}, {"allowed": ()}, {"allowed": ["other"]}], ids=str)
def test_disabled_entry_point_is_not_imported(install: Callable[..., None], settings: dict[str, Any]) -> None:
    install("kframe-left-out", {"left-out": "left_out"}, left_out="raise SystemExit('imported')")
    registry = build_registry(**settings)
    assert state_of(registry, "left-out").state == "disabled"
    assert "left_out" not in sys.modules


@pytest.mark.parametrize(
    "module, error",
    [
        ("import no_such_module_at_all", "ModuleNotFoundError: No module named 'no_such_module_at_all'"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def (", "SyntaxError"),
        ("x = 1", "it implements no hook: hooks are plain Python functions"),
        (PLUGIN_TEXT.format("Bad Name"), "selector 'Bad Name': expected lower-case"),
    ],
)
def test_broken_entry_point_is_reported_and_others_load(
    install: Callable[..., None], module: str, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    number = zlib.crc32(module.encode())
    install(
        "kframe-two",
        {"a-broken": f"broken_{number}", "b-whole": f"whole_{number}"},
        **{f"broken_{number}": module, f"whole_{number}": PLUGIN_TEXT.format("whole")},
    )
    registry = build_registry(allowed=["a-broken", "b-whole"])
    (broken,) = registry.broken
    assert (broken.name, broken.distribution, broken.offers) == ("a-broken", "kframe-two 1.2", ())
    assert error in (broken.error or "")
    assert "whole" in registry.selectors
    assert "first-in-sync" in registry.selectors
    assert [record.message for record in caplog.records] == ["plugin a-broken (kframe-two 1.2) is broken and left out"]


def no_offers() -> list[Any]:
    return []


def raising() -> list[Any]:
    raise LookupError("cannot offer")


def half() -> Any:
    yield selector_spec("half")
    raise LookupError("lost the rest")


@pytest.mark.parametrize(
    "broken, error",
    [
        (plugin("Broken", kframe_leader_selectors=raising), "LookupError: cannot offer"),
        (plugin("Broken", kframe_leader_selectors=half), "LookupError: lost the rest"),
        (
            plugin("Broken", kframe_leader_selectors=lambda: 3),
            "kframe_leader_selectors returned int 3, expected a list",
        ),
        (
            plugin("Broken", kframe_stores=lambda: None),
            "kframe_stores returned nothing (None), expected a list of StoreSpec: is a return statement missing?",
        ),
        (selectors("Broken", "rack"), "kframe_leader_selectors offers str 'rack', expected SelectorSpec"),
        (selectors("Broken", FirstInSync("x")), "kframe_leader_selectors offers FirstInSync"),
        (plugin("Broken", kframe_stores=lambda: [selector_spec("x")]), "kframe_stores offers SelectorSpec"),
        (
            plugin("Broken", kframe_stores=lambda: [TransportSpec("x", nothing_for, "")]),
            "kframe_stores offers TransportSpec",
        ),
        (plugin("Broken", kframe_no_such_hook=no_offers), "unknown hook 'kframe_no_such_hook'"),
        (plugin("Broken", kframe_stores=lambda surprise: []), "surprise"),
        (SimpleNamespace(kframe_stores=lambda: None), "it implements no hook"),
    ],
    ids=range(11),
)
def test_broken_plugin_offers_nothing(broken: object, error: str) -> None:
    registry = build(broken, selectors("Whole", selector_spec("whole")))
    (rejected,) = registry.broken
    assert error in (rejected.error or "")
    assert registry.selectors.keys() == build().selectors.keys() | {"whole"}


def observer_spec(name: str) -> ObserverSpec:
    return ObserverSpec(name, lambda: SimpleNamespace(stepped=lambda cause, effects: None), "")


@pytest.mark.parametrize(
    "hook, spec, description",
    [
        ("kframe_leader_selectors", selector_spec("duplicate"), "leader selector 'duplicate'"),
        ("kframe_stores", StoreSpec("duplicate", nothing_for, ""), "store for the URL scheme 'duplicate'"),
        ("kframe_clusters", ClusterSpec("duplicate", nothing_for, ""), "live cluster for the URL scheme 'duplicate'"),
        ("kframe_transports", TransportSpec("duplicate", nothing_for, ""), "transport for the URL scheme 'duplicate'"),
        ("kframe_observers", observer_spec("duplicate"), "observer 'duplicate'"),
    ],
)
def test_duplicate_name_error_names_both_plugins(hook: str, spec: object, description: str) -> None:
    first, second = (plugin(name, **{hook: lambda: [spec]}) for name in ("One", "Other"))
    with pytest.raises(PluginError) as caught:
        build(first, second)
    assert str(caught.value) == (
        f"{description} is offered by extra One and by extra Other; disable one of them with --no-plugin"
    )
    assert state_of(build(first, second, disabled=["Other"]), "Other").state == "disabled"


def test_builtin_name_cannot_be_replaced() -> None:
    with pytest.raises(PluginError, match="'preferred' is offered by kframe-controller and by extra Thief"):
        build(selectors("Thief", selector_spec("preferred")))


def test_two_distributions_with_same_entry_point_name(install: Callable[..., None]) -> None:
    install("kframe-one", {"same": "one_module"}, one_module=PLUGIN_TEXT.format("one"))
    install("kframe-other", {"same": "other_module"}, other_module=PLUGIN_TEXT.format("other"))
    with pytest.raises(PluginError, match=r"plugin 'same' is offered by kframe-one 1.2 and by kframe-other 1.2"):
        build_registry(allowed=["same"])


def test_plugins_are_loaded_from_directory(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(PLUGIN_TEXT.format("one"))
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "__init__.py").write_text("from .rule import *\n")
    (tmp_path / "two" / "rule.py").write_text(PLUGIN_TEXT.format("two"))
    (tmp_path / "bad.py").write_text("1/0")
    for ignored in ("_private.py", ".hidden.py", "notes.txt"):
        (tmp_path / ignored).write_text("1/0")
    (tmp_path / "empty").mkdir()
    registry = build(plugins_dir=tmp_path)
    plugins = {
        plugin.name: (plugin.state, plugin.distribution)
        for plugin in registry.plugins
        if plugin.source is PluginSource.DIRECTORY
    }
    assert plugins == {
        "bad": ("broken", str(tmp_path / "bad.py")),
        "one": ("loaded", str(tmp_path / "one.py")),
        "two": ("loaded", str(tmp_path / "two")),
    }
    assert {"one", "two"} < set(registry.selectors)
    assert MODULE_PREFIX + "one" in sys.modules
    assert MODULE_PREFIX + "bad" not in sys.modules


def test_missing_plugins_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plugins directory: found .*nowhere, expected an existing directory"):
        build(plugins_dir=tmp_path / "nowhere")


def test_unknown_name_error_lists_known_names() -> None:
    registry = build(selectors("Broken", "?"))
    with pytest.raises(PluginError) as caught:
        registry.selector("prefered")
    assert str(caught.value).startswith(
        "no leader selector 'prefered'; did you mean 'preferred'?; there are: avoid-brokers, "
        "controlled-shutdown, controlled-shutdown-0.8.2, first-in-sync, prefer-racks, preferred, reassigned; plugin "
    ), "plugins that are installed are named too"
    assert str(caught.value).endswith("plugin Broken (extra Broken) is broken")
    with pytest.raises(PluginError, match="no store for the URL scheme 'zk'; there are: memory"):
        registry.open_store("zk://localhost")


def test_selectors_are_keyed_by_election_kind() -> None:
    registry = build(selectors("More", selector_spec("more", (ElectionKind.OFFLINE, ElectionKind.REASSIGN))))
    selector_by_kind = registry.selectors_for(["more", "preferred"])
    assert {kind: selector.name for kind, selector in selector_by_kind.items()} == {
        ElectionKind.OFFLINE: "more",
        ElectionKind.REASSIGN: "more",
        ElectionKind.PREFERRED: "preferred",
    }
    with pytest.raises(PluginError, match="selectors 'more' and 'first-in-sync' are both for OFFLINE elections"):
        registry.selectors_for(["more", "first-in-sync"])


def test_options_reach_factory() -> None:
    calls: list[dict[str, Any]] = []

    def factory(**options: Any) -> FirstInSync:
        calls.append(options)
        return FirstInSync("weighed")

    options = (Option("weight", int, 1, ""), Option("rack", str, "a", ""))
    registry = build(selectors("Weighed", selector_spec("weighed", factory=factory, options=options)))
    registry.selectors_for(["weighed"], {"weighed": {"weight": "5"}})
    assert calls == [{"weight": 5, "rack": "a"}]


def fail() -> None:
    raise OSError("no weights file")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"factory": fail}, "selector 'odd' cannot be made: OSError: no weights file"),
        ({"factory": lambda: FirstInSync("even")}, "its factory returned a selector named 'even'"),
        ({"factory": lambda: 3}, "its factory returned int, expected a LeaderSelector"),
        ({"factory": lambda: 3, "tier": Tier.SCALAR}, "its factory returned int, expected a function"),
        ({"factory": lambda: 3, "tier": Tier.NATIVE}, "found int, expected a PyCapsule or NativeFunction"),
    ],
)
def test_factory_of_wrong_type_is_refused(changes: dict[str, Any], message: str) -> None:
    registry = build(selectors("Odd", selector_spec("odd", **changes)))
    with pytest.raises(PluginError, match=message):
        registry.selector("odd")


def commands(name: str, *added: str, then: Callable[[], None] = lambda: None) -> type:
    def register(cli: click.Group) -> None:
        for command in added:
            cli.add_command(click.Command(command))
        then()

    return plugin(name, kframe_register_commands=register)


def test_failing_plugin_adds_no_commands(caplog: pytest.LogCaptureFixture) -> None:
    cli = click.Group(commands={"whatif": click.Command("whatif")})
    registry = build(commands("Bad", "half", then=fail), commands("Good", "greet", "wave"))
    registry.register_commands(cli)
    assert list(cli.commands) == ["whatif", "greet", "wave"]
    assert caplog.records[0].message == "plugin Bad (extra Bad) cannot register its commands"


@pytest.mark.parametrize(
    "plugins, message",
    [
        ([commands("Thief", "whatif")], "command 'whatif' is offered by kframe-controller and by extra Thief"),
        (
            [commands("One", "greet"), commands("Two", "greet")],
            "command 'greet' is offered by extra One and by extra Two",
        ),
    ],
)
def test_existing_command_cannot_be_replaced(plugins: list[type], message: str) -> None:
    whatif = click.Command("whatif")
    cli = click.Group(commands={"whatif": whatif})
    with pytest.raises(PluginError, match=message):
        build(*plugins).register_commands(cli)
    assert cli.commands["whatif"] is whatif
