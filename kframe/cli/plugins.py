"""``kframe plugins``: what is installed, what it offers, whether it keeps the rules, and a new one to start from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.output import BadInput, ReportingGroup, Table, emit_record, emit_rows, output_option
from kframe.errors import PluginError

if TYPE_CHECKING:
    from kframe.plug.checks import Finding
    from kframe.plug.loading import Plugin, Spec
    from kframe.plug.registry import Registry
    from kframe.plug.specs import SelectorSpec

_PATH: Final = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """Which plugins a command may load, as its options say."""

    plugins_dir: Path | None = None
    disabled: tuple[str, ...] = ()
    trace: bool = False

    def registry(self) -> Registry:
        """Load the plugins. Raises BadInput if two of them clash, InputError if there is no such directory."""
        from kframe.plug.registry import build_registry

        def tell(line: str) -> None:
            if self.trace:
                click.echo(f"plugins: {line}", err=True)

        try:
            return build_registry(self.disabled, self.plugins_dir, trace=tell)
        except PluginError as error:
            raise BadInput(str(error)) from error


def plugin_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which plugins to load; it gets them as ``plugins``, a PluginSettings."""

    @functools.wraps(command)
    def with_settings(
        *args: Any, plugins_dir: Path | None, no_plugin: tuple[str, ...], trace_plugins: bool, **kwargs: Any
    ) -> Any:
        return command(*args, plugins=PluginSettings(plugins_dir, no_plugin, trace_plugins), **kwargs)

    options = (
        click.option(
            "--plugins-dir",
            type=_PATH,
            envvar="KFRAME_PLUGINS_DIR",
            help="Also load the Python files in this directory as plugins.",
        ),
        click.option("--no-plugin", multiple=True, metavar="NAME", help="Do not load this plugin; may be repeated."),
        click.option(
            "--trace-plugins",
            is_flag=True,
            envvar="KFRAME_TRACE_PLUGINS",
            help="Tell on stderr which plugins are loaded and what their hooks offer.",
        ),
    )
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), with_settings)


@click.group("plugins", cls=ReportingGroup)
def group() -> None:
    """See, check and start plugins: leader selectors, stores, transports, servers, observers and commands."""


@group.command("list")
@plugin_options
@output_option
def list_plugins(plugins: PluginSettings, output: str) -> None:
    """List the plugins found and what they offer."""
    columns = ("plugin", "distribution", "source", "state", "offers", "error")
    rows = (_record(one) | {"offers": _offers(one)} for one in plugins.registry().plugins)
    emit_rows(Table("kframe.plugins/v1", columns, rows), output)


@group.command()
@click.argument("name")
@plugin_options
@output_option
def show(name: str, plugins: PluginSettings, output: str) -> None:
    """Show the plugin NAME, or the plugin that offers the selector NAME, in full."""
    record = _record(_find(plugins.registry(), name))
    if output in ("table", "wide"):
        record |= {what: list(map(_in_words, record[what])) for what in _LISTS}
        record = {key: value for key, value in record.items() if value not in (None, [], False)}
    emit_record("kframe.plugin/v1", record, output)


@group.command()
@click.argument("name")
@plugin_options
@output_option
def check(name: str, plugins: PluginSettings, output: str) -> None:
    """Hold the selector NAME, or all selectors of the plugin NAME, to the rules that every selector keeps.

    Then simulated clusters run with it in charge. Exit code 1 if one breaks a rule. Native selectors run in a process
    of their own, and are not simulated.
    """
    from kframe.plug.specs import Tier

    registry = plugins.registry()
    plugin = _find(registry, name)
    if plugin.state != "loaded":
        raise BadInput(f"plugin {plugin.name} ({plugin.distribution}) is {plugin.state}: {plugin.error or 'as asked'}")
    every = list(_selectors(plugin.offers))
    specs = every if name == plugin.name else [spec for spec in every if spec.name == name]
    if not specs:
        raise BadInput(f"plugin {plugin.name} ({plugin.distribution}) offers no selector to check")
    findings = [(spec, one) for spec in specs for one in _findings(registry, spec, plugins)]
    findings += [(spec, _simulated(registry, spec)) for spec in specs if spec.tier is not Tier.NATIVE]
    rows = [
        {"selector": spec.name, "tier": spec.tier, "check": one.check, "passed": one.problem is None,
         "problem": one.problem, "rule": one.doc}
        for spec, one in findings
    ]  # fmt: skip
    columns = ("selector", "tier", "check", "passed", "problem", "rule")
    emit_rows(Table("kframe.plugins.check/v1", columns, rows, wide=frozenset({"tier", "rule"})), output)
    if not all(row["passed"] for row in rows):
        click.get_current_context().exit(1)


@group.command()
@click.argument("directory", type=_PATH)
@click.option("--name", required=True, help="Name of the selector, in lower case with dashes.")
def new(directory: Path, name: str) -> None:
    """Write a new plugin distribution into DIRECTORY: a selector, its tests and its entry point."""
    from kframe.plug.scaffold import new_plugin

    for file in new_plugin(directory, name):
        click.echo(file)


def _findings(registry: Registry, spec: SelectorSpec, plugins: PluginSettings) -> Iterable[Finding]:
    from kframe.plug.checks import run_checks
    from kframe.plug.isolated import check_isolated
    from kframe.plug.specs import Tier

    if spec.tier is Tier.NATIVE:
        return check_isolated(spec.name, plugins.disabled, plugins.plugins_dir, row_by_row=spec.row_by_row)
    return run_checks(lambda: registry.selector(spec.name), spec.kinds, row_by_row=spec.row_by_row)


#: Simulated clusters that a selector is put in charge of.
_SEEDS: Final = range(1, 4)


def _simulated(registry: Registry, spec: SelectorSpec) -> Finding:
    """Put a selector in charge of elections in whole simulated clusters (``kframe.sim``).

    What holds only at rest is not looked at: a selector may choose nobody.
    """
    from kframe.plug.checks import Finding
    from kframe.sim import INVARIANTS, World, plan_of
    from kframe.sim.watch import Moment

    always = tuple(one for one in INVARIANTS if one.moment is not Moment.RESTED)
    rule = "Clusters that it elects leaders for keep every invariant, whatever befalls them."
    for seed in _SEEDS:
        selector = registry.selector(spec.name)
        result = World(*plan_of(seed, spec.name), dict.fromkeys(spec.kinds, selector), always).run()
        broken = [one for one in result.violations if one.number.startswith("I")]
        if broken:
            first = broken[0]
            return Finding("simulated-clusters", rule, f"seed {seed}: {first.number}: {first.problem}")
    return Finding("simulated-clusters", rule, None)


def _find(registry: Registry, name: str) -> Plugin:
    """The plugin called ``name``, or the one that offers a selector of that name."""
    for plugin in registry.plugins:
        if plugin.name == name:
            return plugin
    for plugin in registry.plugins:
        if any(spec.name == name for spec in _selectors(plugin.offers)):
            return plugin
    known = sorted({*(plugin.name for plugin in registry.plugins), *registry.selectors})
    raise BadInput(f"no plugin or selector {name!r}; there are: {', '.join(known)}")


def _selectors(offers: Iterable[Spec]) -> Iterator[SelectorSpec]:
    from kframe.plug.specs import SelectorSpec

    return (spec for spec in offers if isinstance(spec, SelectorSpec))


#: What a plugin may offer, as lists of its record.
_LISTS: Final = ("selectors", "stores", "transports", "clusters", "admins", "servers", "observers")


def _record(plugin: Plugin) -> dict[str, Any]:
    """All that is known of a plugin."""
    from kframe.plug.loading import KEY
    from kframe.plug.specs import AdminSpec, ClusterSpec, ObserverSpec, ServerSpec, StoreSpec, TransportSpec

    def named(kind: type[Spec]) -> list[dict[str, str]]:
        offers = (spec for spec in plugin.offers if isinstance(spec, kind))
        return [{"name": getattr(spec, KEY[kind]), "doc": spec.doc} for spec in offers]

    return {
        "plugin": plugin.name,
        "distribution": plugin.distribution,
        "source": plugin.source,
        "state": plugin.state,
        "error": plugin.error,
        "selectors": [_selector(spec) for spec in _selectors(plugin.offers)],
        "stores": named(StoreSpec),
        "transports": named(TransportSpec),
        "clusters": named(ClusterSpec),
        "admins": named(AdminSpec),
        "servers": named(ServerSpec),
        "observers": named(ObserverSpec),
        "commands": plugin.register_commands is not None,
    }


def _selector(spec: SelectorSpec) -> dict[str, Any]:
    options = [
        {"name": one.name, "type": one.type.__name__, "default": one.default, "doc": one.doc} for one in spec.options
    ]
    kinds = [kind.name for kind in spec.kinds]
    return {
        "name": spec.name, "tier": spec.tier, "kinds": kinds, "row_by_row": spec.row_by_row, "options": options,
        "doc": spec.doc,
    }  # fmt: skip


def _offers(plugin: Plugin) -> list[str]:
    record = _record(plugin)
    return [one["name"] for what in _LISTS for one in record[what]] + (["commands"] if record["commands"] else [])


def _in_words(offer: Mapping[str, Any]) -> str:
    """One offer on one line."""
    about = f" ({offer['tier']}; {', '.join(offer['kinds'])})" if "tier" in offer else ""
    options = "".join(
        f" [{one['name']}={one['default']} ({one['type']}): {one['doc']}]" for one in offer.get("options", ())
    )
    return f"{offer['name']}{about}: {offer['doc']}{options}"
