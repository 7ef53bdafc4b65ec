"""Parses ``kframe`` command lines of documents without running them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click

from kframe.cli.app import cli

#: The start of a command line within a shell command: at its start, after an assignment, a pipe or an operator.
_START: Final = re.compile(r"(?:^|[|;&(]\s*|\$\()(?:\w+=\S+ +)*(?:\S*/)?kframe (?=[a-z-])", re.MULTILINE)
#: What ends a command line in a shell: an operator, a redirection, a comment, or the parenthesis of a substitution.
_OPERATOR: Final = frozenset("|;&()<>")
#: Types whose conversion reads only the word.
_CLOSED: Final[tuple[type[click.ParamType[Any]], ...]] = (
    click.Choice,
    click.IntRange,
    click.FloatRange,
    type(click.INT),
    type(click.FLOAT),
)
#: A word in capitals or angle brackets that a reader replaces.
_PLACEHOLDER: Final = re.compile(r"[A-Z][A-Z0-9_-]*|<.*>|.*\$.*|\.\.\.|…")


def command_lines(command: str) -> Iterator[list[str]]:
    """Return the words of each ``kframe`` command line in a shell command, without ``kframe``."""
    text = command.replace("\\\n", " ")
    for match in _START.finditer(text):
        yield words(text[match.end() :].partition("\n")[0])


def words(line: str) -> list[str]:
    """Return the words of a command line up to an operator of the shell or a comment."""
    return list(_words(line))


def _words(line: str) -> Iterator[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&()<>")
    lexer.whitespace_split = True
    try:
        for word in lexer:
            if word and set(word) <= _OPERATOR:
                return
            if not (word.isdigit() and line.partition(word)[2].startswith(">")):  # the 2 of 2> is no argument
                yield word
    except ValueError:  # A quote that another line closes.
        return


def usage_error(line: Sequence[str], complete: bool = True) -> str | None:
    """Return why a command line is invalid, None if it is valid.

    ``complete`` is False for a mention in a text, which may lack arguments. Words in capitals are values that readers
    replace. Files need not exist.
    """
    command: click.Command = cli
    context = click.Context(cli, info_name="kframe")
    remaining = list(line)
    while isinstance(command, click.Group):
        if remaining and remaining[0].startswith("-"):
            return _unknown_option(command, context, remaining)
        if not remaining or (not complete and _PLACEHOLDER.fullmatch(remaining[0])):
            return None if not complete else f"{context.command_path} needs a command"
        subcommand = command.get_command(context, remaining[0])
        if subcommand is None:
            return f"{context.command_path} has no command {remaining[0]}"
        command = subcommand
        context = click.Context(command, parent=context, info_name=remaining.pop(0))
    if {"-h", "--help"} & set(remaining):
        return None
    return _leaf_error(command, context, remaining, complete)


def _unknown_option(command: click.Command, context: click.Context, words: list[str]) -> str | None:
    options = {option for parameter in command.get_params(context) for option in parameter.opts}
    name = words[0].partition("=")[0]
    return None if name in options | {"-h", "--help"} else f"{context.command_path} has no option {name}"


def _leaf_error(command: click.Command, context: click.Context, words: list[str], complete: bool) -> str | None:
    try:
        values, extra, _ = command.make_parser(context).parse_args(list(words))
        if extra and not context.allow_extra_args:
            return f"{context.command_path}: unexpected argument {extra[0]}"
        for parameter in command.get_params(context):
            value = values.get(parameter.name or "")
            # click has a marker of its own for a missing value.
            has_value = isinstance(value, str | list | tuple) and len(value) > 0
            if complete and parameter.required and not has_value:
                return f"{context.command_path} needs {parameter.human_readable_name}"
            _check_value(parameter, value, context)
    except click.UsageError as error:
        incomplete = not complete and not isinstance(error, click.NoSuchOption)
        return None if incomplete else f"{context.command_path}: {error.message}"
    return None


def _check_value(parameter: click.Parameter, value: object, context: click.Context) -> None:
    """Convert the numbers and choices of a parameter; other types may open files. Raises click.UsageError."""
    if not isinstance(parameter.type, _CLOSED) or not isinstance(value, str | list | tuple):
        return
    for text in [value] if isinstance(value, str) else value:
        if isinstance(text, str) and not _PLACEHOLDER.fullmatch(text):
            parameter.type.convert(text, parameter, context)
