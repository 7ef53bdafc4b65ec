"""``kframe sim``: simulate clusters from seeds and check the invariants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kframe.cli.exits import writing_to
from kframe.cli.numbers import WholeNumber, limit_option
from kframe.cli.output import BadInput, OutputTable, ReportingGroup, emit_record, emit_rows, output_option
from kframe.cli.progress import progress
from kframe.cli.studies import PATH
from kframe.model.texts import counted
from kframe.model.whole_numbers import parse_whole

if TYPE_CHECKING:
    from kframe_simulator import Action, Options, Result

#: As many digits as a range of seeds has.
_SEED_MAX: Final = 10**9 - 1
_SEEDS: Final = re.compile(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?")
_COLUMNS: Final = ("seed", "events", "simulated_seconds", "trace", "violations", "options")


@click.group("sim", cls=ReportingGroup)
def group() -> None:
    """Simulate whole clusters from seeds. Check the invariants after every event."""


class _Seeds(click.ParamType[range]):
    name = "A..B"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """``A..B``, both included, or one seed."""
        match = _SEEDS.fullmatch(str(value))
        if match is None or int(match[2] or match[1]) < int(match[1]):
            self.fail(f"{value!r} is not A..B, two numbers of which the second is not the smaller", param, ctx)
        return range(int(match[1]), int(match[2] or match[1]) + 1)


@group.command()
@click.option("--seeds", type=_Seeds(), required=True, help="Seeds, both ends included, or a single seed.")
@click.option("--jobs", type=WholeNumber(1), default=1, show_default=True, help="Processes at a time.")
@click.option("--keep", metavar="DIR", type=PATH, help="Write the runs that break an invariant into this directory.")
@click.option(
    "--append", "parts", metavar="FILE", type=PATH, help="Write each 500 seeds to this file; skip parts that it has."
)
@click.option("--each", is_flag=True, help="A line for each seed, with its options, instead of the sum.")
@limit_option
@output_option
def run(
    seeds: range, jobs: int, keep: Path | None, parts: Path | None, each: bool, limit: int | None, output: str
) -> None:
    """Play seeds. Exit code 1 if one breaks an invariant.

    One seed in fifty is played twice, and must leave the same trace.

    A run with --append that was interrupted goes on where it was; "kframe sim total" adds its parts up.
    """
    from kframe_simulator import Totals
    from kframe_simulator.simulation.parts import missing, read_parts

    if keep is not None and keep.exists() and not keep.is_dir():
        raise BadInput(f"--keep {keep}: found a file, expected a directory")
    totals = Totals()
    chunks = [seeds] if parts is None else list(missing(seeds, read_parts(parts)))

    def played() -> Any:
        with progress(counted(len(seeds), "seed")) as line:
            for result in _play(chunks, jobs, keep, parts):
                totals.add(result)
                line(totals.seeds, len(seeds))
                yield _row(result)

    if each:
        emit_rows(OutputTable("kframe.sim-seeds/v1", _COLUMNS, played(), frozenset({"options"}), limit), output)
    else:
        for _ in played():
            pass
        emit_record("kframe.sim/v1", {"first_seed": seeds[0], "last_seed": seeds[-1], **totals.to_dict()}, output)
    if totals.failed:
        click.get_current_context().exit(1)


@group.command()
@click.argument("parts", metavar="FILE", type=PATH)
@output_option
def total(parts: Path, output: str) -> None:
    """Add up the parts of a run with --append. Exit code 1 if a seed broke an invariant."""
    from kframe_simulator.simulation.parts import read_parts, sum_parts

    read = read_parts(parts)
    if not read:
        raise BadInput(f"{parts}: found no parts, expected a file that --append has written")
    summed = sum_parts(read)
    emit_record("kframe.sim-total/v1", summed, output)
    if summed["failed_seeds"]:
        click.get_current_context().exit(1)


@group.command()
@click.argument("source", metavar="SEED|FILE")
@click.option("--write", "target", metavar="OUT", type=PATH, help="Write the run to this file.")
@click.option("--scenario", metavar="OUT", type=PATH, help="Write what was played as a scenario file.")
@output_option
def replay(source: str, target: Path | None, scenario: Path | None, output: str) -> None:
    """Play one seed again, or a recorded run. Exit code 1 if it breaks an invariant.

    A recorded run must leave the same trace; otherwise the exit code is 1, too.
    """
    from kframe_simulator import Simulation
    from kframe_simulator.simulation.files import run_document, scenario_text, write_run

    options, plan, expected = _read(source)
    simulation = Simulation(options, plan)
    result = simulation.run()
    if target is not None:
        with writing_to(target):
            write_run(target, result)
    if scenario is not None:
        with writing_to(scenario):
            scenario.write_text(scenario_text(options, simulation.played_steps, result.simulated_ms), encoding="utf-8")
    emit_record("kframe.sim-run/v1", run_document(result), output)
    if expected not in (None, result.trace):
        click.echo(
            f"{source}: the trace is {result.trace}, not {expected}: this is not the build that wrote it", err=True
        )
    if result.violations or expected not in (None, result.trace):
        click.get_current_context().exit(1)


@group.command("shrink")
@click.argument("source", metavar="SEED|FILE")
@click.option(
    "--invariant", metavar="I", help="Invariant that must stay violated.  [default: the first that is violated]"
)
@click.option("--write", "target", metavar="OUT", type=PATH, help="Write the shorter run to this file.")
@click.option("--tries", type=WholeNumber(1), default=400, show_default=True, help="Maximum number of plans to try.")
@output_option
def shrink_command(source: str, invariant: str | None, target: Path | None, tries: int, output: str) -> None:
    """Leave actions out of a run as long as it breaks the same invariant."""
    from kframe_simulator import INVARIANTS, play, shrink
    from kframe_simulator.simulation.files import run_document, write_run

    known = [rule.number for rule in INVARIANTS]
    if invariant not in (None, *known):
        raise click.UsageError(f"--invariant: found {invariant!r}, expected one of {', '.join(known)}")
    options, plan, _ = _read(source)
    first = play(options, plan)
    if not first.violations:
        raise BadInput(f"{source}: found a run that breaks no invariant, expected one that does")
    number = invariant or first.violations[0].number
    if all(violation.number != number for violation in first.violations):
        raise BadInput(f"{source}: found {first.violations[0].number} broken, expected {number}")
    with progress(counted(len(plan), "action")) as line:
        result = shrink(options, plan, number, lambda done, remaining: line(done, tries), tries)
    if target is not None:
        with writing_to(target):
            write_run(target, result)
    emit_record("kframe.sim-run/v1", run_document(result), output)


def _play(chunks: list[range], jobs: int, keep: Path | None, parts: Path | None) -> Iterator[Result]:
    """Play seeds. Reports and saves those that fail, and appends each chunk."""
    from kframe_simulator import Totals, play_seeds
    from kframe_simulator.simulation.files import write_run
    from kframe_simulator.simulation.parts import append_part

    for chunk in chunks:
        part = Totals()
        for result in play_seeds(chunk, jobs):
            part.add(result)
            if result.violations:
                _complain(result)
                if keep is not None:
                    with writing_to(keep):
                        keep.mkdir(parents=True, exist_ok=True)
                        write_run(keep / f"seed-{result.options.seed}.json", result)
            yield result
        if parts is not None:
            with writing_to(parts):
                append_part(parts, chunk, part)


def _read(source: str) -> tuple[Options, tuple[Action, ...], str | None]:
    """Options and plan of a seed or a file; for a file also its trace."""
    from kframe_simulator import plan_of
    from kframe_simulator.simulation.files import read_run

    seed = parse_whole(source, _SEED_MAX)
    if seed is not None:
        return *plan_of(seed), None
    return read_run(Path(source))


def _complain(result: Result) -> None:
    first = result.violations[0]
    click.echo(f"seed {result.options.seed}: {first.number} at {first.at_ms:.1f} ms: {first.problem}", err=True)


def _row(result: Result) -> dict[str, Any]:
    return {
        "seed": result.options.seed,
        "events": result.events,
        "simulated_seconds": round(result.simulated_ms / 1000.0),
        "trace": result.trace,
        "violations": [f"{violation.number}: {violation.problem}" for violation in result.violations],
        "options": result.options.to_dict(),
    }
