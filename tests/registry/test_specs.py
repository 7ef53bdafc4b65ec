"""Plugin specs are validated when they are created."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from kframe.errors import ConfigError, PluginError
from kframe.model.ids import ElectionKind
from kframe.registry.registry import build_registry
from kframe.registry.specs import ObserverSpec, Option, PortSpec, SelectorSpec, StoreSpec, Tier


def make_nothing(*arguments: object) -> Any:
    """A factory that is never called."""


GOOD: dict[str, Any] = {
    "name": "good",
    "tier": Tier.BULK,
    "factory": dict,
    "kinds": (ElectionKind.OFFLINE,),
    "doc": "Good.",
}


@pytest.mark.parametrize("name", ["", "A", "two words", "under_score", "-a", "a-", "a--b", "1a", "ä", "a\n", None, 3])
@pytest.mark.parametrize(
    "make", [lambda name: SelectorSpec(**GOOD | {"name": name}), lambda name: ObserverSpec(name, make_nothing, "")]
)
def test_bad_names(make: Any, name: object) -> None:
    with pytest.raises(PluginError, match="expected lower-case"):
        make(name)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("kinds", (), "expected one ElectionKind or more"),
        ("kinds", ("OFFLINE",), "expected one ElectionKind or more"),
        ("kinds", (0,), "expected one ElectionKind or more"),
        ("tier", "bulk", "expected a Tier"),
        ("tier", "gpu", "expected a Tier"),
        ("factory", None, "expected something to call"),
    ],
)
def test_bad_selectors(field: str, value: object, message: str) -> None:
    with pytest.raises(PluginError, match=f"selector 'good': .*{message}"):
        SelectorSpec(**GOOD | {field: value})


@pytest.mark.parametrize("scheme", ["", "ZK", "1x", "a b", "a:"])
def test_bad_schemes(scheme: str) -> None:
    with pytest.raises(PluginError, match="URL scheme"):
        StoreSpec(scheme, make_nothing, "")


OPTIONS = (
    Option("weight", int, 3, "A number."),
    Option("share", float, 0.5, "A share."),
    Option("strict", bool, False, "Or not."),
    Option("rack", str, "a", "A rack."),
)


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, {"weight": 3, "share": 0.5, "strict": False, "rack": "a"}),
        ({"weight": 7}, {"weight": 7, "share": 0.5, "strict": False, "rack": "a"}),
        (
            {"weight": "7", "share": "2", "strict": "True", "rack": "7"},
            {"weight": 7, "share": 2.0, "strict": True, "rack": "7"},
        ),
        ({"share": 1}, {"weight": 3, "share": 1, "strict": False, "rack": "a"}),
    ],
)
def test_options(values: dict[str, object], expected: dict[str, object]) -> None:
    assert SelectorSpec(**GOOD, options=OPTIONS).values(values) == expected


@pytest.mark.parametrize(
    "values, message",
    [
        ({"wait": 1}, "selector good: found option 'wait', expected one of weight, share, strict, rack"),
        ({"weight": "many"}, "selector good, option weight: found 'many', expected int"),
        ({"weight": 1.5}, "selector good, option weight: found float 1.5, expected int"),
        ({"weight": True}, "selector good, option weight: found bool True, expected int"),
        ({"strict": "maybe"}, "selector good, option strict: found 'maybe', expected bool"),
        ({"strict": 1}, "selector good, option strict: found int 1, expected bool"),
        ({"rack": 1}, "selector good, option rack: found int 1, expected str"),
    ],
)
def test_bad_options(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SelectorSpec(**GOOD, options=OPTIONS).values(values)
    assert str(caught.value) == message


def test_named_factory_is_imported_when_selected() -> None:
    assert PortSpec("mem", "pathlib:PurePosixPath", "").make("mem:x").name == "mem:x"


@pytest.mark.parametrize("factory", ["no_such_module:f", "pathlib:NoSuchThing", "pathlib"])
def test_unimportable_factory_is_refused(factory: str) -> None:
    with pytest.raises(PluginError, match=f"mem: {factory} cannot be imported"):
        PortSpec("mem", factory, "").make("mem:")


def test_each_import_path_of_plugins_resolves() -> None:
    registry = build_registry()
    specs: list[PortSpec] = [
        *registry.stores.values(),
        *registry.transports.values(),
        *registry.clusters.values(),
        *registry.servers.values(),
    ]
    paths = {path for spec in specs for path in (spec.factory, spec.sandbox) if isinstance(path, str)}
    assert len(paths) > 4
    for path in paths:
        module, _, name = path.partition(":")
        assert callable(getattr(import_module(module), name)), path
