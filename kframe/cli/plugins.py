"""``kframe plugins``: list, show and check plugins, and create new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from kframe.cli.numbers import limit_option
from kframe.cli.options import collected
from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_record, emit_rows, output_option, plain
from kframe.errors import InputError, PluginError

if TYPE_CHECKING:
    from kframe.cli.documents.engine import CheckRow, ListedPlugin, PluginRecord, SelectorRecord
    from kframe.registry.loading import Plugin, Spec
    from kframe.registry.registry import Registry
    from kframe.registry.specs import SelectorSpec, Tier
    from kframe.testing.selector_checks import Finding

#: The keys of ``kframe.registry.scaffold.TEMPLATES``.
OFFERS: Final = ("selector", "cost-term", "goal")
_PATH: Final = click.Path(path_type=Path)


@dataclass(frozen=True, slots=True)
class PluginSettings:
    """The plugins that a command may load, from its options."""

    plugins_dir: Path | None = None
    disabled: tuple[str, ...] = ()
    trace: bool = False

    def registry(self) -> Registry:
        """Load the plugins. Raises PluginError if two of them clash, InputError if there is no such directory."""
        from kframe.registry.registry import build_registry

        def trace(line: str) -> None:
            if self.trace:
                click.echo(f"plugins: {line}", err=True)

        return build_registry(self.disabled, self.plugins_dir, trace=trace)


def _settings(plugins_dir: Path | None, no_plugin: tuple[str, ...], trace_plugins: bool) -> PluginSettings:
    settings = PluginSettings(plugins_dir, no_plugin, trace_plugins)
    if plugins_dir is not None or no_plugin:
        settings.registry()  # Refuse a missing directory or an unknown name also where no plugin is needed.
    return settings


#: Adds the options for loading plugins to a command, which receives them as ``plugins``.
plugin_options: Final = collected(
    "plugins",
    _settings,
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
        help="Print on stderr which plugins are loaded and what their hooks offer.",
    ),
)


@click.group("plugins", cls=ReportingGroup)
def group() -> None:
    """List, check and create plugins: selectors, parts of plans, stores, transports, servers and commands."""


@group.command("list")
@plugin_options
@limit_option
@output_option
def list_plugins(plugins: PluginSettings, limit: int | None, output: str) -> None:
    """List the plugins and what they offer."""
    columns = ("plugin", "distribution", "source", "state", "error", "offers")
    rows = (_listed(plugin) for plugin in plugins.registry().plugins)
    emit_rows(OutputTable("kframe.plugins/v2", columns, rows, limit=limit), output)


@group.command()
@click.argument("name")
@plugin_options
@output_option
def show(name: str, plugins: PluginSettings, output: str) -> None:
    """Show the plugin NAME, or the plugin that offers the selector, cost term, goal, store or transport NAME."""
    record = _record(_find(plugins.registry(), name))
    if output not in ("table", "wide"):
        emit_record("kframe.plugin/v2", record, output)
        return
    texts = {
        key: list(map(_offer_text, value)) if isinstance(value, list) else value for key, value in plain(record).items()
    }
    emit_record("", {key: value for key, value in texts.items() if value not in (None, [], False)}, output)


@group.command()
@click.argument("name")
@click.option(
    "--url", help="Where a store or transport is tested; by default its scheme alone. The storage there must be empty."
)
@plugin_options
@limit_option
@output_option
def check(name: str, url: str | None, plugins: PluginSettings, limit: int | None, output: str) -> None:
    """Check the selector, cost term, goal, store or transport NAME, or all that the plugin NAME offers.

    With kframe-simulator installed, selectors elect leaders in simulated clusters, and stores and transports are
    compared with the embedded ones in seeded histories. A difference names its seed and step. Exit code 1 if one
    breaks a rule. Native functions run in a process of their own, and are not simulated.
    """
    registry = plugins.registry()
    plugin = _find(registry, name)
    if plugin.state != "loaded":
        raise BadInput(
            f"plugin {plugin.name} ({plugin.distribution}) is {plugin.state}: {plugin.error or 'by --no-plugin'}"
        )
    specs = [spec for spec in plugin.offers if _kind(spec) and name in (plugin.name, spec.name)]
    rows = [row for spec in specs for row in _checked(registry, spec, url, plugins)]
    if all(row.passed is None for row in rows):
        problem = rows[0].problem if rows else "offers no selector, cost term, goal, store or transport to check"
        raise BadInput(f"plugin {plugin.name} ({plugin.distribution}) {problem}")
    columns = ("offer", "kind", "tier", "check", "passed", "problem", "rule")
    emit_rows(OutputTable("kframe.plugins.check/v1", columns, rows, frozenset({"kind", "tier", "rule"}), limit), output)
    if any(row.passed is False for row in rows):
        click.get_current_context().exit(1)


@group.command()
@click.argument("directory", type=_PATH)
@click.option("--name", required=True, help="Name of what it offers, in lower case with dashes.")
@click.option("--offers", type=click.Choice(OFFERS), default=OFFERS[0], show_default=True, help="What it offers.")
def create(directory: Path, name: str, offers: str) -> None:
    """Write a new plugin distribution into DIRECTORY: a selector, cost term or goal, its tests and its entry point."""
    from kframe.registry.scaffold import new_plugin

    for file in new_plugin(directory, name, offers):
        click.echo(file)


def _checked(registry: Registry, spec: Spec, url: str | None, plugins: PluginSettings) -> Iterator[CheckRow]:
    """A row for each check of an offer. ``passed`` is None for checks that could not run."""
    from kframe.cli.documents.engine import CheckRow

    offer, kind, tier = spec.name, cast(Any, _kind(spec)), cast(Any, _tier(spec))
    try:
        for finding in _findings(registry, spec, url, plugins):
            yield CheckRow(offer, kind, tier, finding.check, finding.problem is None, finding.problem, finding.doc)
    except (InputError, PluginError) as error:
        yield CheckRow(offer, kind, tier, "not-tried", None, f"not tried: {error}", "")


def _findings(registry: Registry, spec: Spec, url: str | None, plugins: PluginSettings) -> Iterator[Finding]:
    from kframe.registry.specs import CostTermSpec, GoalSpec, PortSpec, SelectorSpec, Tier
    from kframe.testing.isolated_checks import check_isolated, findings_of

    if isinstance(spec, SelectorSpec | CostTermSpec | GoalSpec) and spec.tier is Tier.NATIVE:
        yield from check_isolated(spec.name, plugins.disabled, plugins.plugins_dir, kind=type(spec))
        return
    if isinstance(spec, CostTermSpec | GoalSpec):
        yield from findings_of(registry, spec)
        return
    if isinstance(spec, SelectorSpec):
        yield from findings_of(registry, spec)
    elif not registry.checks:
        raise PluginError("no plugin checks stores and transports; kframe-simulator does")
    where = url or (f"{spec.scheme}:" if isinstance(spec, PortSpec) else "")
    for check in registry.checks.values():
        yield check.run(spec, where)


def _kind(spec: Spec) -> str | None:
    """What an offer is. None if there are no checks for it."""
    from kframe.registry.specs import CostTermSpec, GoalSpec, SelectorSpec, StoreSpec, TransportSpec

    kinds = {
        SelectorSpec: "selector",
        CostTermSpec: "cost term",
        GoalSpec: "goal",
        StoreSpec: "store",
        TransportSpec: "transport",
    }
    return kinds.get(type(spec))


def _tier(spec: Spec) -> Tier | None:
    """How an offer is called. None for stores and transports."""
    from kframe.registry.specs import CostTermSpec, GoalSpec, SelectorSpec

    return spec.tier if isinstance(spec, SelectorSpec | CostTermSpec | GoalSpec) else None


def _find(registry: Registry, name: str) -> Plugin:
    """The plugin called ``name``. Otherwise the plugin that offers a selector, store or transport of that name."""
    for plugin in registry.plugins:
        if plugin.name == name:
            return plugin
    offered = {spec.name: plugin for plugin in registry.plugins for spec in plugin.offers if _kind(spec)}
    if name in offered:
        return offered[name]
    known = sorted({*(plugin.name for plugin in registry.plugins), *offered})
    raise BadInput(f"no plugin, selector, cost term, goal, store or transport {name!r}; there are: {', '.join(known)}")


def _listed(plugin: Plugin) -> ListedPlugin:
    """All data about a plugin, and the names of its offers."""
    from msgspec.structs import asdict

    from kframe.cli.documents.engine import ListedPlugin

    fields = asdict(_record(plugin))
    offers = [offer.name for value in fields.values() if isinstance(value, list) for offer in value]
    return ListedPlugin(**fields, offers=offers + (["commands"] if plugin.register_commands is not None else []))


def _record(plugin: Plugin) -> PluginRecord:
    """All data about a plugin."""
    from kframe.cli.documents.engine import OfferRecord, PluginRecord
    from kframe.registry.loading import OFFERS as OFFERS_OF_HOOKS
    from kframe.registry.specs import SelectorSpec

    offers = {
        hook.removeprefix("kframe_"): [
            OfferRecord(spec.name, spec.doc) for spec in plugin.offers if isinstance(spec, kind)
        ]
        for hook, kind in OFFERS_OF_HOOKS.items()
        if kind is not SelectorSpec
    }
    return PluginRecord(
        plugin=plugin.name,
        distribution=plugin.distribution,
        source=plugin.source,
        state=plugin.state,
        error=plugin.error,
        selectors=[_selector(spec) for spec in plugin.offers if isinstance(spec, SelectorSpec)],
        checks=offers.pop("plugin_checks"),
        commands=plugin.register_commands is not None,
        **offers,
    )


def _selector(spec: SelectorSpec) -> SelectorRecord:
    from kframe.cli.documents.engine import OptionRecord, SelectorRecord

    types: Any = {option.name: option.type.__name__ for option in spec.options}
    options = [OptionRecord(option.name, types[option.name], option.default, option.doc) for option in spec.options]
    return SelectorRecord(spec.name, spec.tier.value, [kind.name for kind in spec.kinds], options, spec.doc)


def _offer_text(offer: Mapping[str, Any]) -> str:
    """An offer on one line."""
    details = f" ({offer['tier']}; {', '.join(offer['kinds'])})" if "tier" in offer else ""
    options = "".join(
        f" [{word['name']}={word['default']} ({word['type']}): {word['doc']}]" for word in offer.get("options", ())
    )
    return f"{offer['name']}{details}: {offer['doc']}{options}"
