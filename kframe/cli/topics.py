"""Topics on the command line: lists of names and patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import click

from kframe.cli.output import BadInput

#: The metavariable of lists of topics, and the end of their help.
TOPICS: Final = "TOPIC,..."
PATTERNS: Final = "patterns have * and ?; may be repeated"


def topic_names(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """Callback of a repeatable option for topics separated by commas: names and patterns, each once."""
    return _names(values, "topics such as orders,audit-*")


def rack_names(_ctx: click.Context, _option: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """Callback of a repeatable option for racks separated by commas, each once."""
    return _names(values, "racks such as rack-a,rack-b")


def _names(values: Iterable[str], expected: str) -> tuple[str, ...]:
    names = [name for value in values for name in value.split(",")]
    if not all(names):
        raise click.BadParameter(f"found {','.join(names)!r}, expected {expected}")
    return tuple(dict.fromkeys(names))


def topic_partitions(option: str, texts: Iterable[str]) -> list[tuple[str, int]]:
    """The partitions that an option names. Raises InputError for another text, BadInput for a partition twice."""
    from kframe.model.topic_partitions import parse_topic_partition

    partitions: dict[tuple[str, int], None] = {}
    for text in texts:
        partition = parse_topic_partition(option, text)
        if partition in partitions:
            raise BadInput(f"{option}: found {text} twice, expected each partition once")
        partitions[partition] = None
    return list(partitions)
