"""One grammar of all commands, by walking every argument and option.

The cluster is the first argument, an election has a ``--type``, and lists have one name and may be repeated.
"""

from __future__ import annotations

from typing import Final

import click
import pytest

from kframe.cli.app import cli
from tests.cli.test_exits import leaves

LEAVES: Final = leaves(cli)
COMMANDS: Final = [pytest.param(path, command, id=" ".join(path)) for path, command in LEAVES]
#: What arguments name a cluster: a file, a live cluster, a metadata log, or a fleet.
CLUSTERS: Final = frozenset({"SNAPSHOT", "[SNAPSHOT]", "[SNAPSHOT] PLAN", "URL", "[URL]", "SOURCE", "DIR"})
#: Commands on live clusters that replace a tool of Kafka: they take its ``--bootstrap-server``.
LIKE_TOOLS: Final = frozenset(
    {
        ("elect",),
        ("reassign", "cancel"),
        ("reassign", "list"),
        ("reassign", "start"),
    }
)
#: The names of options for lists, by the metavariable of their values.
LISTS: Final[dict[str, set[str]]] = {
    "TOPIC,...": {"--topics", "--exclude-topics", "--one-rack"},
    "ID[-ID],...": {
        "--brokers",
        "--remove-brokers",
        "--exclude-brokers",
        "--controllers",
        "--voters",
        "--stale-controllers",
        "--demote-brokers",
        "--fail",
    },
    "RACK,...": {"--racks"},
    "TOPIC-PARTITION": {"--partition"},
}
#: Commands in which an option with the name of a list is a number: they create something of this size.
COUNTS: Final[dict[str, set[tuple[str, ...]]]] = {
    "--brokers": {("bench",), ("console",), ("demo",), ("snapshot", "generate")},
    "--topics": {("snapshot", "generate")},
    "--racks": {("snapshot", "generate")},
}
#: Options for one object whose name is also the plural of others, with the reason.
SINGULARS: Final = {
    "--broker": "whatif fail-directories has exactly one broker",
    "--log-dir": "a directory for logs, not the sizes of partitions",
    "--partition": "a partition; --partitions is a count",
    "--scenario": "an output of a simulation; --scenarios is an input of Spark",
    "--seed": "a random seed; --seeds is a range of simulations",
}


def arguments(command: click.Command) -> list[str]:
    """The arguments of a command, as its usage names them."""
    ctx = click.Context(command)
    return [parameter.make_metavar(ctx) for parameter in command.params if isinstance(parameter, click.Argument)]


def options(command: click.Command) -> list[click.Option]:
    """The options of a command."""
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_cluster_is_the_first_argument(path: tuple[str, ...], command: click.Command) -> None:
    names = arguments(command)
    assert not CLUSTERS.intersection(names[1:])
    names_a_cluster = bool(CLUSTERS.intersection(names[:1]))
    has_bootstrap_server = any("--bootstrap-server" in option.opts for option in options(command))
    assert has_bootstrap_server == (path in LIKE_TOOLS)
    assert not (names_a_cluster and has_bootstrap_server)
    assert "PLAN" not in " ".join(names).split() or names_a_cluster or has_bootstrap_server
    assert not any({"--snapshot", "--source"}.intersection(option.opts) for option in options(command))


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_elections_are_chosen_by_type(path: tuple[str, ...], command: click.Command) -> None:
    del path
    choices = [p for p in command.params if isinstance(p.type, click.Choice) and "preferred" in p.type.choices]
    assert all(choice.opts == ["--type"] for choice in choices)


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_lists_have_one_name_and_may_be_repeated(path: tuple[str, ...], command: click.Command) -> None:
    list_names = {name for names in LISTS.values() for name in names}
    for option in options(command):
        name = option.opts[-1]
        assert option.multiple == ((option.help or "").partition("  [")[0].endswith("may be repeated.")), name
        if option.metavar in LISTS:
            assert name in LISTS[option.metavar]
            assert option.multiple
        elif name in list_names and not option.secondary_opts:
            assert path in COUNTS[name], f"{name} of {' '.join(path)} is no list"


def test_no_option_has_a_singular_and_a_plural_name() -> None:
    names = {name for _, command in LEAVES for option in options(command) for name in option.opts}
    assert {name for name in names if f"{name}s" in names} == SINGULARS.keys()


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_listings_are_chosen_by_list(path: tuple[str, ...], command: click.Command) -> None:
    del path
    switches = {option.opts[-1] for option in options(command) if option.is_flag and not option.secondary_opts}
    assert not switches & {"--brokers", "--topics", "--partitions", "--racks"}


@pytest.mark.parametrize(("path", "command"), COMMANDS)
def test_every_option_has_help(path: tuple[str, ...], command: click.Command) -> None:
    del path
    helps = {option.opts[-1]: option.help for option in options(command)}
    assert all(helps.values()), [name for name, text in helps.items() if not text]
