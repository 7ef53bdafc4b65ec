"""The options of the goals of a plan, as fields of a ``PlanRequest``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.log_dirs import DIRECTORY, directories
from kframe.cli.numbers import (
    IDS,
    IDS_MAX,
    ByteSize,
    DecimalNumber,
    WholeNumber,
    broker_ids,
    parse_count,
    parse_decimal,
    parse_ids,
)
from kframe.cli.options import collected, with_options
from kframe.cli.output import BadInput
from kframe.cli.studies import chosen_selectors
from kframe.cli.topics import PATTERNS, TOPICS, topic_names
from kframe.model.whole_numbers import parse_whole

if TYPE_CHECKING:
    from kframe.cli.plugins import PluginSettings
    from kframe.model.elections import LeaderSelector


def pairs(
    expected: str, number: Callable[[str], Any]
) -> Callable[[click.Context, click.Parameter, Any], dict[str, Any]]:
    """Callback of an option that is repeated or separated by commas: texts such as ``KEY=VALUE``, by key.

    A key that is given twice is refused. ``number`` raises ValueError.
    """

    def parse(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> dict[str, Any]:
        parsed: dict[str, Any] = {}
        for text in (part for value in values for part in value.split(",")):
            key, equals, value = text.rpartition("=")
            if equals and not key:
                raise click.BadParameter(f"found {text!r}, expected {expected}")
            if key in parsed:
                raise click.BadParameter(f"found {key or 'a value for all'} twice, expected it once")
            try:
                parsed[key] = number(value)
            except ValueError as problem:
                raise click.BadParameter(f"found {text!r}, expected {expected}: {problem}") from problem
        return parsed

    return parse


def _broker_racks(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> dict[int, str | None]:
    """Callback of ``--add-brokers``: ``7,8-9:rack-a`` as {7: None, 8: "rack-a", 9: "rack-a"}."""
    brokers: dict[int, str | None] = {}
    for text in (part for value in values for part in value.split(",")):
        ids, colon, rack = text.partition(":")
        if colon and not rack:
            raise click.BadParameter(f"found {text!r} without a rack, expected ID or ID:RACK")
        try:
            brokers_of_text = parse_ids(ids)
        except ValueError as problem:
            raise click.BadParameter(f"found {text!r}, expected broker ids such as 7, 7-9 or 7:rack-a") from problem
        for broker_id in brokers_of_text:
            if broker_id in brokers:
                raise click.BadParameter(f"found broker {broker_id} twice, expected each broker once")
            brokers[broker_id] = rack or None
        if len(brokers) > IDS_MAX:
            raise click.BadParameter(f"found {len(brokers)} ids, expected at most {IDS_MAX}")
    return brokers


def _topic_factors(ctx: click.Context, option: click.Parameter, values: Iterable[str]) -> dict[str, int]:
    """Callback of ``--replication-factor``: the factor by topic."""
    factors = pairs("TOPIC=N", parse_count)(ctx, option, values)
    if "" in factors:
        raise BadInput("--replication-factor: found no topic, expected TOPIC=N")
    return factors


def _replacements(ctx: click.Context, option: click.Parameter, values: Iterable[str]) -> dict[int, int]:
    """Callback of ``--replace``: the new broker by the old one."""
    replacements: dict[int, int] = {}
    for old, new in pairs("OLD=NEW broker ids", parse_count)(ctx, option, values).items():
        broker_id = parse_whole(old)
        if broker_id is None:
            raise BadInput(f"--replace: found {old!r}, expected a broker id")
        if broker_id in replacements:
            raise BadInput(f"--replace: found broker {broker_id} twice, expected it once")
        replacements[broker_id] = new
    return replacements


def by_broker(
    expected: str, number: Callable[[str], Any], *, has_default: bool = True
) -> Callable[[click.Context, click.Parameter, Any], dict[int | None, Any]]:
    """Callback of an option for texts such as ``ID=VALUE`` or ``1-3=VALUE``: the values by broker id.

    The key None has a value without an id, if ``has_default`` permits one.
    """

    def parse(ctx: click.Context, option: click.Parameter, texts: Iterable[str]) -> dict[int | None, Any]:
        values, name = pairs(expected, number)(ctx, option, texts), option.opts[0]
        parsed: dict[int | None, Any] = {None: values.pop("")} if has_default and "" in values else {}
        for key, value in values.items():
            try:
                ids = parse_ids(key)
            except ValueError as problem:
                raise BadInput(f"{name}: found {key!r}, expected a broker id, or a range such as 1-3") from problem
            for broker_id in ids:
                if broker_id in parsed:
                    raise BadInput(f"{name}: found broker {broker_id} twice, expected it once")
                parsed[broker_id] = value
            if len(parsed) > IDS_MAX:
                raise BadInput(f"{name}: found {len(parsed)} ids, expected at most {IDS_MAX}")
        return parsed

    return parse


def _goals(*, add_brokers: dict[int, str | None], **goals: Any) -> dict[str, Any]:
    racks = {broker_id: rack for broker_id, rack in add_brokers.items() if rack is not None}
    return {**goals, "add_brokers": tuple(add_brokers), "racks": racks}


rate_option: Final = click.option(
    "--rate",
    type=ByteSize(per_second=True),
    metavar="RATE",
    help="Bytes per second into a broker, and out of it, such as 50MB/s; gives the expected duration.",
)

#: Adds the options of a ``PlanRequest`` to a command, which receives its keywords without the weights as ``goals``.
goal_options: Final = collected(
    "goals",
    _goals,
    click.option("--remove-brokers", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Move all replicas off these brokers; may be repeated."),
    click.option("--add-brokers", multiple=True, callback=_broker_racks, metavar="ID[-ID][:RACK],...",
                 help="Give these brokers their share of the replicas; may be repeated."),
    click.option("--replace", multiple=True, callback=_replacements, metavar="OLD=NEW",
                 help="Give all replicas of a broker to another; may be repeated."),
    click.option("--evacuate-rack", "evacuate_racks", multiple=True, metavar="RACK",
                 help="Move all replicas off the brokers of a rack; may be repeated."),
    click.option("--replication-factor", "replication_factors", multiple=True, metavar="TOPIC=N",
                 callback=_topic_factors, help="Change the replication factor of topics; may be repeated."),
    click.option("--fix-racks", is_flag=True, help="Spread partitions evenly over as many racks as they can span."),
    click.option("--one-rack", multiple=True, callback=topic_names, metavar=TOPICS,
                 help=f"Put all replicas of a partition of these topics in one rack; {PATTERNS}."),
    click.option("--rebalance", is_flag=True, help="Give every broker its share of replicas and leaders."),
    click.option("--leaders-only", is_flag=True, help="Balance preferred leaders by order; move no data."),
    click.option("--demote-brokers", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Take leadership off these brokers by order; move no data; may be repeated."),
    click.option("--demote-rack", "demote_racks", multiple=True, metavar="RACK",
                 help="Take leadership off the brokers of a rack; move no data; may be repeated."),
    click.option("--demote-directory", "demote_directories", multiple=True, callback=directories, metavar=DIRECTORY,
                 help="Take leadership off the replicas in this log directory, a path or a KRaft id, by order; "
                      "move no data; may be repeated."),
    click.option("--leader-rack", "leader_racks", multiple=True, metavar="RACK",
                 help="Lead partitions in this rack where they have a replica; may be repeated."),
    click.option("--topics", multiple=True, callback=topic_names, metavar=TOPICS,
                 help=f"Plan only these topics; {PATTERNS}."),
    click.option("--exclude-topics", multiple=True, callback=topic_names, metavar=TOPICS,
                 help=f"Leave these topics out; {PATTERNS}."),
    click.option("--exclude-brokers", multiple=True, callback=broker_ids, metavar=IDS,
                 help="Brokers that receive no replicas and no leaders, and that a rebalance takes none from; may be "
                      "repeated."),
    click.option("--broker-cap", "broker_caps", multiple=True, metavar="[ID[-ID]=]N",
                 callback=by_broker("N or ID=N", parse_count), help="The most replicas of a broker; may be repeated."),
    click.option("--capacity", "capacities", multiple=True, metavar="ID[-ID]=NUMBER",
                 callback=by_broker("ID=NUMBER", parse_decimal, has_default=False),
                 help="Relative capacity of a broker; may be repeated.  [default: 1]"),
    click.option("--tolerance", type=DecimalNumber(0, 100), default=1.0, show_default=True, metavar="PERCENT",
                 help="Deviation from the share of bytes that a rebalance with --weights allows."),
    rate_option,
    click.option("--exact", is_flag=True, help="Solve a small problem to the optimum (needs highspy)."),
    click.option("--seed", type=WholeNumber(), default=0, show_default=True,
                 help="Order in which partitions are considered."),
)  # fmt: skip


def term_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--goal`` and ``--cost`` to a command. It receives them as ``goal`` and ``cost_terms``, names."""
    return with_options(
        command,
        click.option("--goal", metavar="NAME", help="Balance brokers by the goal of a plugin."),
        click.option(
            "--cost",
            "cost_terms",
            multiple=True,
            metavar="NAME",
            help="Cost term of a plugin that adds to the cost of moves; may be repeated.",
        ),
    )


def chosen_leader_selector(
    plugins: PluginSettings, names: tuple[str, ...], options: Mapping[str, str]
) -> LeaderSelector | None:
    """The leader selector of OFFLINE elections among those called ``names``; None without a name.

    Raises BadInput if none of them is for these elections, and errors as ``chosen_selectors``.
    """
    selectors = {kind.name: selector for kind, selector in chosen_selectors(plugins, names, options).items()}
    if names and "OFFLINE" not in selectors:
        raise BadInput(f"--selector: found {', '.join(names)}, expected a selector for OFFLINE elections")
    return selectors.get("OFFLINE")


def chosen_terms(plugins: PluginSettings, goal: str | None, cost_terms: Iterable[str]) -> dict[str, Any]:
    """The fields of a ``PlanRequest`` for names of plugins; no plugin is loaded if there is none. Raises
    PluginError."""
    names = tuple(dict.fromkeys(cost_terms))
    if goal is None and not names:
        return {}
    registry = plugins.registry()
    return {
        "goal": None if goal is None else registry.goal(goal),
        "cost_terms": tuple(registry.cost_term(name) for name in names),
    }
