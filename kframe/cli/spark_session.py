"""Shared code of the ``kframe spark`` commands: the options for the Spark session, its errors, and messages.

Spark's own log goes to a file, which is kept and reported only if the command fails; ``kframe -v`` leaves it on
standard error.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import HAS_FINDINGS, INTERRUPTED
from kframe.cli.findings import exit_on_findings
from kframe.cli.options import with_options
from kframe.cli.output import BadInput
from kframe.cli.studies import pairs_of_option
from kframe.model.texts import short_repr
from kframe.model.whole_numbers import INT64_MAX, parse_whole
from kframe.spark.sessions import check_master, check_pyspark

if TYPE_CHECKING:
    from kframe.spark.stages import StageResult

#: Errors of kframe in an executor arrive as text at the end of a traceback.
_IN_EXECUTOR: Final = re.compile(
    r"kframe\.errors\.(?:exceptions\.)?(?:Config|Input|Parameter|Plugin|Scenario|Snapshot|Znode)Error: (.+)"
)

#: The last line of a Python traceback, anywhere in Spark's message.
_TRACEBACK_END: Final = re.compile(r"^\s*(?:[A-Za-z_][\w.]*\.)?([A-Z]\w*(?:Error|Exception): \S.*)$", re.MULTILINE)
_WORKER_EXITED: Final = re.compile(r"Python worker (?:exited|failed)|EOFException|Connection reset", re.IGNORECASE)
#: Modules whose exceptions mean that Spark, or the connection to it, has failed.
_OF_SPARK: Final = ("py4j", "pyspark", "grpc")
_REASON_LETTERS: Final = 200
#: Keys of a context's ``meta``.
_SAVED_MESSAGE: Final = "kframe.spark.safe"
_LOG: Final = "kframe.spark.log"
_STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The Spark session of a command; by default the active session, that of ``spark-submit``, or a local one."""

    master: str | None
    remote: str | None
    conf: Mapping[str, str]

    def session(self) -> Any:
        """The SparkSession. Raises InputError if pyspark is not installed."""
        from kframe.spark.sessions import session

        with _log_to_file():
            return session(self.master, remote=self.remote, conf=self.conf)

    def session_for(self, cost: int | None) -> Any:
        """The SparkSession for work that costs as much as so many partitions, or None: the driver does little work
        itself. Raises InputError as ``session``, also for a setting that is no number."""
        from kframe.spark.tasks import DRIVER_PARTITIONS, DRIVER_PARTITIONS_MAX

        stated = self.conf.get(DRIVER_PARTITIONS, str(DRIVER_PARTITIONS_MAX))
        most = parse_whole(stated, INT64_MAX)
        if most is None:
            raise BadInput(f"--conf {DRIVER_PARTITIONS}: found {short_repr(stated)}, expected a whole number")
        return self.session() if cost is None or cost > most else None


class SparkFailure(click.ClickException):
    """Spark, one of its processes, or the connection to it has failed: one line on stderr, exit code 1."""

    exit_code = 1


def report_saved(out: str | None, count: Callable[[], tuple[int, int]], unit: str) -> None:
    """If the command fails from here on, report how many ``unit`` of the total are complete in ``out``."""

    def saved_message() -> str:
        complete, total = count()
        return f"{complete} of {total} {unit} are whole in {out} and are kept; run the same command again for the rest"

    click.get_current_context().meta[_SAVED_MESSAGE] = saved_message


def planned_in(out: str | None, unit: str) -> Callable[[Any, Any], None]:
    """``Writing.planned`` for ``report_saved``."""
    return lambda marks, requested: report_saved(out, lambda: (marks.count(requested), len(requested)), unit)


def report_messages(stage: StageResult, result: Mapping[str, int], unit: str) -> None:
    """Report recomputed clusters, whose input changed, problems with their reasons, and the ``findings``, counted in
    ``unit``. Exits with HAS_FINDINGS if there are problems or findings."""
    for cluster in stage.changed:
        click.echo(f"cluster {cluster}: its input has changed since it was written; done again", err=True)
    for problem in stage.problems:
        scenario = f", scenario {problem['scenario'] or '-'}" if unit == "scenario" else ""
        click.echo(f"cluster {problem['cluster']}{scenario}: {problem['problem']}", err=True)
    exit_on_findings(result, unit)
    if stage.problems:
        click.get_current_context().exit(HAS_FINDINGS)


def spark_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--master``, ``--remote`` and ``--conf`` to a command, as its parameter ``spark`` (SparkSettings).

    Bad input in an executor is reported like bad input in this process.
    """

    @functools.wraps(command)
    def with_spark(*args: Any, master: str | None, remote: str | None, conf: dict[str, str], **kwargs: Any) -> Any:
        if master is not None and remote is not None:
            raise click.UsageError("--master and --remote exclude one another")
        check_pyspark()  # before a command reads its input
        check_master(master)
        ctx = click.get_current_context()
        try:
            result = command(*args, spark=SparkSettings(master, remote, conf), **kwargs)
        except (Exception, KeyboardInterrupt) as problem:
            if _is_interrupt(problem):
                _drop_log(ctx)
                click.echo(f"error: interrupted by SIGINT: {_saved_message(ctx)}", err=True)
                ctx.exit(INTERRUPTED)
            if (result := _IN_EXECUTOR.search(str(problem))) is not None:
                _drop_log(ctx)
                raise BadInput(result[1]) from problem
            of_spark = type(problem).__module__.partition(".")[0] in _OF_SPARK
            if not of_spark and not isinstance(problem, ConnectionError):
                _drop_log(ctx)
                raise
            log = f" (Spark's log: {ctx.meta[_LOG]})" if _LOG in ctx.meta else ""
            where = "" if master is None and remote is None else f" at {master or remote}"
            raise SparkFailure(f"{_reason(problem)}{where}: {_saved_message(ctx)}{log}") from problem
        _drop_log(ctx)
        return result

    return with_options(
        with_spark,
        click.option(
            "--master", metavar="URL", help="Spark master, such as local[4] or spark://host:7077.  [local[*]]"
        ),
        click.option("--remote", metavar="URL", help="Spark Connect server, such as sc://host:15002."),
        click.option(
            "--conf",
            metavar="KEY=VALUE",
            multiple=True,
            callback=pairs_of_option,
            help="Spark setting; may be repeated.",
        ),
    )


@contextmanager
def _log_to_file() -> Iterator[None]:
    """Redirect the standard error of child processes to a new file, unless ``-v`` was given."""
    ctx = click.get_current_context()
    if ctx.find_root().params.get("verbose") or _LOG in ctx.meta:
        yield
        return
    descriptor, ctx.meta[_LOG] = tempfile.mkstemp(prefix="kframe-spark-", suffix=".log")
    sys.stderr.flush()
    before = os.dup(_STDERR)
    try:
        os.dup2(descriptor, _STDERR)
        yield
    finally:
        os.dup2(before, _STDERR)
        os.close(before)
        os.close(descriptor)


def _drop_log(ctx: click.Context) -> None:
    """Delete the log after success."""
    if _LOG in ctx.meta:
        Path(ctx.meta.pop(_LOG)).unlink(missing_ok=True)


def _is_interrupt(problem: BaseException | None) -> bool:
    """Whether SIGINT is the first cause. Spark then cancels its jobs, and their callers may fail."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__cause__ or problem.__context__
    return problem is not None


def _reason(problem: BaseException) -> str:
    """A short reason from Spark's message."""
    text = str(problem)
    if errors := _TRACEBACK_END.findall(text):
        reason = errors[-1]
    elif _WORKER_EXITED.search(text):
        return "a Python worker of Spark ended unexpectedly (killed, or out of memory)"
    else:
        reason = next((line.strip() for line in text.splitlines() if line.strip()), type(problem).__name__)
    return f"Spark failed: {reason[:_REASON_LETTERS]}"


def _saved_message(ctx: click.Context) -> str:
    saved_message: Callable[[], str] | None = ctx.meta.get(_SAVED_MESSAGE)
    return "nothing is written; run the same command again" if saved_message is None else saved_message()
