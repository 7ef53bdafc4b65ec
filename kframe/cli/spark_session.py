"""The options that every ``kframe spark`` command has: which Spark it works on."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import click

from kframe.cli.output import BadInput

#: Errors of kframe in an executor arrive as text, at the end of a traceback.
_IN_EXECUTOR: Final = re.compile(r"kframe\.errors\.(?:Config|Input|Plugin|Scenario|Snapshot|Znode)Error: (.+)")

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Which Spark a command works on; nothing given means the session at work, ``spark-submit``'s, or a local one."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str]

    def session(self) -> Any:
        """The SparkSession. Raises InputError if pyspark is not installed."""
        from kframe.spark.session import session

        return session(self.master, remote=self.remote, conf=self.conf)


def _pairs(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if wrong := [text for text, (key, sign, _) in zip(texts, pairs, strict=True) if not key or not sign]:
        raise click.BadParameter(f"{wrong[0]} is not KEY=VALUE")
    return {key: value for key, _, value in pairs}


_OPTIONS: Final = (
    click.option("--master", metavar="URL", help="Spark master, such as local[4] or spark://host:7077.  [local[*]]"),
    click.option("--remote", metavar="URL", help="Spark Connect server, such as sc://host:15002."),
    click.option("--conf", metavar="KEY=VALUE", multiple=True, callback=_pairs, help="Spark setting; may be repeated."),
)


def spark_options(command: Command) -> Command:
    """Give a command ``--master``, ``--remote`` and ``--conf``, as its parameter ``spark`` (SparkSettings).

    Bad input that an executor came upon is reported as if this process had.
    """

    @functools.wraps(command)
    def with_spark(*args: Any, master: str | None, remote: str | None, conf: dict[str, str], **kwargs: Any) -> Any:
        if master is not None and remote is not None:
            raise click.UsageError("--master and --remote exclude one another")
        try:
            return command(*args, spark=SparkSettings(master, remote, conf), **kwargs)
        except Exception as problem:
            found = _IN_EXECUTOR.search(str(problem))
            if found is None:
                raise
            raise BadInput(found[1]) from problem

    wrapped: Any = with_spark
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    found: Command = wrapped
    return found
