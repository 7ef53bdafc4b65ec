"""One rule for repeated options of all commands: lists accumulate, single values and choices are given once."""

from __future__ import annotations

import click


def refuse_repeated_options(command: click.Command, ctx: click.Context, arguments: list[str]) -> None:
    """Raise UsageError if ``arguments`` of a command, or of a command in its group, give a single value twice.

    click takes the last of several values without a word. A plain switch may be repeated, because it has one meaning.
    """
    given, remaining = _given_options(command, ctx, arguments)
    for parameters in given.values():
        if len(parameters) > 1 and not all(map(_may_be_repeated, parameters)):
            names = " and ".join(dict.fromkeys(parameter.opts[-1] for parameter in parameters))
            raise click.UsageError(f"{names}: found {len(parameters)} values, expected one", ctx)
    if isinstance(command, click.Group) and remaining:
        member = command.get_command(ctx, remaining[0])
        if member is not None:
            refuse_repeated_options(member, click.Context(member, ctx, remaining[0]), remaining[1:])


def _given_options(
    command: click.Command, ctx: click.Context, arguments: list[str]
) -> tuple[dict[str, list[click.Option]], list[str]]:
    """The options on the command line by the name of their value, and the arguments that are none of the command."""
    _, remaining, parameters = command.make_parser(ctx).parse_args(list(arguments))
    given: dict[str, list[click.Option]] = {}
    for parameter in parameters:
        if isinstance(parameter, click.Option) and parameter.name is not None:
            given.setdefault(parameter.name, []).append(parameter)
    return given, remaining


def _may_be_repeated(option: click.Option) -> bool:
    """Whether an option is a list, a counter, or a switch without an opposite."""
    is_switch = option.is_flag and option.is_bool_flag and not option.secondary_opts
    return option.multiple or option.count or is_switch
