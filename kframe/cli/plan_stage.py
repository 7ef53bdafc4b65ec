"""``kframe plan stage``: the options of limits, the files of stages, and a table of stages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.numbers import ByteSize, WholeNumber, parse_size
from kframe.cli.options import collected
from kframe.cli.output import BadInput, echo_text, emit_data, emit_heading, emit_section
from kframe.cli.plan_goals import by_broker
from kframe.cli.report import write_shown

if TYPE_CHECKING:
    from kframe.plans.check.rules import CheckedPlan
    from kframe.plans.stage.manifest import StageManifest
    from kframe.plans.stage.request import StageRequest
    from kframe.plans.stage.stages import StagedPlan

_STAGES: Final = (
    "stage",
    "partitions",
    "moves",
    "bytes",
    "max_in",
    "max_out",
    "seconds",
    "day",
    "begin",
    "end",
    "failures",
)


def _limits(*, windows: tuple[str, ...], **limits: Any) -> dict[str, Any]:
    from kframe.plans.stage.windows import parse_windows

    return {**limits, "windows": parse_windows(windows)}


#: Adds the options of a ``StageRequest`` to a command, which receives its keywords without the weights as ``limits``.
limit_options: Final = collected(
    "limits",
    _limits,
    click.option("--max-moves-per-broker", "moves_per_broker", type=WholeNumber(1), metavar="N",
                 help="Replicas into a broker, and out of it, in a stage."),
    click.option("--max-moves", "moves", type=WholeNumber(1), metavar="N", help="Replicas copied in a stage."),
    click.option("--max-bytes-in-flight", "bytes_in_flight", type=ByteSize(), metavar="SIZE",
                 help="Bytes copied in a stage, such as 500GB or 20MiB."),
    click.option("--max-bytes-per-broker", "bytes_per_broker", type=ByteSize(), metavar="SIZE",
                 help="Bytes into a broker, and out of it, in a stage."),
    click.option("--disk-capacity", multiple=True, metavar="[ID[-ID]=]SIZE",
                 callback=by_broker("SIZE or ID=SIZE", parse_size),
                 help="Disk capacity of a broker, such as 4TB; may be repeated."),
    click.option("--rate", type=ByteSize(per_second=True), metavar="RATE",
                 help="Bytes per second into a broker, and out of it, such as 50MB/s; gives the time of stages."),
    click.option("--window", "windows", multiple=True, metavar="HH:MM-HH:MM",
                 help="Time of the day in which stages run, such as 22:00-06:00; may be repeated."),
)  # fmt: skip


def stage(
    checked: CheckedPlan, request: StageRequest, out: str | None, page: Path | None, output: str, limit: int
) -> int:
    """Stage a plan, write its files and the page about it, and print it. Return the exit code."""
    from kframe.plans.stage.manifest import SCHEMA
    from kframe.plans.stage.page import stage_rows
    from kframe.plans.stage.stages import stage_plan

    is_file = out is not None and out.endswith(".json")
    _check(out, is_file)
    staged = stage_plan(checked, request, files=out is not None and not is_file)
    manifest = staged.manifest
    if out is not None:
        _write(staged, Path(out), is_file)
    write_shown(page, staged)
    if not emit_data(SCHEMA, manifest, _STAGES, stage_rows(manifest), output):
        _emit_tables(manifest, output, limit)
    misses_window = request.windows and any(row.window is None for row in manifest.stages)
    return 1 if manifest.unstaged or misses_window else 0


def _check(out: str | None, is_file: bool) -> None:
    """Raise an error unless the stages may be written: to no file of that name, or to an empty folder."""
    from kframe.whatif.files import check_file

    if out is not None and is_file:
        check_file(Path(out), force=False)
    elif out is not None and Path(out).exists() and (not Path(out).is_dir() or any(Path(out).iterdir())):
        raise BadInput(f"--out {out}: found a file or a folder with files, expected a new or an empty folder")


def _write(staged: StagedPlan, path: Path, is_file: bool) -> None:
    from kframe.plans.stage.manifest import MANIFEST_FILE, manifest_text

    try:
        if not is_file:
            path.mkdir(parents=True, exist_ok=True)
            for name, text in staged.documents():
                (path / name).write_text(text)
        (path if is_file else path / MANIFEST_FILE).write_bytes(manifest_text(staged.manifest))
    except OSError as problem:
        raise BadInput(f"--out {path}: {problem.strerror}") from problem


def _emit_tables(manifest: StageManifest, output: str, limit: int) -> None:
    from kframe.plans.stage.page import failure_rows, stage_rows

    emit_heading(manifest.summary, output)
    for note in manifest.notes:
        echo_text(note, output)
    failures = failure_rows(manifest)
    if not failures:
        click.echo("no broker failure affects more partitions during or after a stage than before the plan")
    where = "-o json has them all"
    emit_section(stage_rows(manifest), output, limit=limit, where=where)
    emit_section(failures, output, limit=limit, where=where)
    emit_section(manifest.unstaged, output, limit=limit, where=where)
