"""Every option of every command, given twice: lists accumulate, single values and choices are refused."""

from __future__ import annotations

from typing import Final

import click
import pytest

from kframe.cli.app import cli
from tests.cli.running import HEALTHY, document, kframe
from tests.cli.test_exits import leaves

#: Two values of each option that takes a list, and the value of both.
LISTS: Final[dict[str, tuple[str, str, object]]] = {
    "add_brokers": ("7", "8-9:rack-a", {7: None, 8: "rack-a", 9: "rack-a"}),
    "bootstrap_server": ("a:1", "b:2,c:3", ("a:1", "b:2,c:3")),
    "broker_caps": ("5", "3=4", {None: 5, 3: 4}),
    "brokers": ("4", "1-2", (4, 1, 2)),
    "capacities": ("1=2", "2-3=1.5", {1: 2.0, 2: 1.5, 3: 1.5}),
    "config": ("a=1", "b=2", {"a": "1", "b": "2"}),
    "conf": ("a=1", "b=2", {"a": "1", "b": "2"}),
    "directories": ("x", "y", ("x", "y")),
    "demote_brokers": ("4", "1-2", (4, 1, 2)),
    "demote_directories": ("1:/a", "2:/b", ((1, "/a"), (2, "/b"))),
    "disk_capacity": ("5", "3=4", {None: 5, 3: 4}),
    "disk_bytes": ("5", "3:/d=4", {None: 5, (3, "/d"): 4}),
    "exclude": ("1:/a", "2:/b", ((1, "/a"), (2, "/b"))),
    "relieve": ("1:/a", "2:/b", ((1, "/a"), (2, "/b"))),
    "controllers": ("999", "1000-1001", (999, 1000, 1001)),
    "exclude_brokers": ("4", "1-2", (4, 1, 2)),
    "fail": ("4", "1-2", (4, 1, 2)),
    "remove_brokers": ("4", "5", (4, 5)),
    "replace": ("1=2", "3=4", {1: 2, 3: 4}),
    "replication_factors": ("a=2", "b=3", {"a": 2, "b": 3}),
    "voters": ("4", "1-2", (4, 1, 2)),
    "stale_controllers": ("4", "1-2", (4, 1, 2)),
    "selector_options": ("a.b=1", "c.d=2", {"a.b": "1", "c.d": "2"}),
    "types": ("PartitionChange", "TopicRecord", ("PartitionChange", "Topic")),
}
OPTIONS: Final = [
    pytest.param(path, command, option, id=f"{' '.join(path)} {option.opts[-1]}")
    for path, command in leaves(cli)
    for option in command.params
    if isinstance(option, click.Option)
]


def sample(option: click.Option) -> list[str]:
    """The words of an option with some value."""
    return [option.opts[-1]] if option.is_flag else [option.opts[-1], "x"]


def is_switch(option: click.Option) -> bool:
    return option.is_flag and option.is_bool_flag and not option.secondary_opts


@pytest.mark.parametrize("path, command, option", OPTIONS)
def test_option_given_twice(path: tuple[str, ...], command: click.Command, option: click.Option) -> None:
    if option.multiple:
        *texts, both = two_values(option)
        assert option.process_value(click.Context(command), texts) == both
    elif not is_switch(option):
        assert "..." not in (option.metavar or ""), "a list that cannot be repeated"
        result = kframe(*path, *sample(option), *sample(option))
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{option.opts[-1]}: found 2 values, expected one" in result.stderr


def two_values(option: click.Option) -> tuple[str, str, object]:
    """Two values of a list, and the value of both."""
    if isinstance(option.type, click.Choice):
        first, second, *_ = option.type.choices
        return first, second, (first, second)
    return LISTS.get(option.name or "", ("x", "y", ("x", "y")))


@pytest.mark.parametrize(
    "line, names",
    [
        ("whatif fail S --together --brokers 4 --one-by-one", "--together"),
        ("snapshot show S --json -o csv", "--json and --output"),
        ("sim run --seeds 1 --seeds 2", "--seeds"),
        ("states --dot -o json -o json", "--output"),
    ],
)
def test_choice_given_twice_is_refused(line: str, names: str) -> None:
    result = kframe(*line.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"error: {names}: found 2 values, expected one (see kframe " in result.stderr


def test_switch_may_be_repeated() -> None:
    assert kframe("states", "--dot", "--dot", "-q", "-q").exit_code == 0


def test_repeated_brokers_fail_together() -> None:
    repeated = document("fail", HEALTHY, "--brokers", "4", "--brokers", "2")
    assert repeated["operation"] == document("fail", HEALTHY, "--brokers", "4,2")["operation"]
