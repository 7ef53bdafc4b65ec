"""Every command rejects bad input with one line that names the location, the documented exit code and no traceback."""

from __future__ import annotations

import io
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner, Result

from kframe.cli.app import cli
from kframe.registry.registry import build_registry
from tests.cli import printing
from tests.cli.bad_inputs import BadInput, make_files, table
from tests.cli.printing import words
from tests.cli.test_exits import INTERRUPTIBLE, leaves

TABLE: Final = tuple(table())
#: Commands that print what they have done before the error.
PRINTING_BEFORE_ERRORS: Final = ("scenario check ", "demo ")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths by the names in the table."""
    folder = tmp_path_factory.mktemp("bad")
    paths = make_files(folder)
    texts = {
        "FAST": "zookeeper.connection.timeout.ms=1000\nzookeeper.session.timeout.ms=1000\n",
        "SCENARIO": "schema: kframe.scenario/v1\nname: x\nsteps: [{elect: {}}]\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        paths[name] = str(folder / name)
    return printing.make_files(folder) | paths


def run(arguments: list[str]) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="kframe", input=b"")


@pytest.mark.parametrize("row", TABLE, ids=[row.line for row in TABLE])
def test_bad_input_names_its_location_in_a_line_and_writes_nothing(row: BadInput, files: dict[str, str]) -> None:
    result = run(words(row.line, files))
    assert result.exit_code == row.code, result.output
    assert "Traceback" not in result.output
    assert row.message in result.output
    assert not Path(files["NEW"]).exists()
    if row.code == 2:
        assert (result.stderr[:7], result.stderr.count("\n")) == ("error: ", 1)
        assert result.stdout == "" or row.line.startswith(PRINTING_BEFORE_ERRORS)


def test_table_has_every_command() -> None:
    everything = click.Group()
    build_registry().register_commands(everything)
    paths = {" ".join(path) for path, _ in leaves(cli) + leaves(everything)}
    rows = {path for path in paths for row in TABLE if row.line.split()[: len(path.split())] == path.split()}
    assert paths - rows == set()
    assert len(TABLE) >= 150


#: Commands that print, which are run with standard output on a full disk.
PRINTING: Final = (
    *(f"{name} {lines[0]}" for name, lines in printing.TABLES.items()),
    "completion bash",
    "demo --partitions 1000 --brokers 6",
    "plan stamp SNAPSHOT PLAN",
    "plan status JOURNAL",
    "schema whatif",
)
#: Commands that write files, each with a new path.
WRITING: Final = (
    "plan execute CLUSTER MOVE --execute --journal OUT",
    "plugins create OUT --name good",
    "reassign start t-0=3,4 ADMIN --execute --journal OUT",
    "scenario run SCENARIO --trace OUT",
    "sim replay 1 --scenario OUT",
    "sim replay 1 --write OUT",
    "sim run --seeds 1 --append OUT",
    "snapshot capture zookeeper://a OUT EMBEDDED",
    "snapshot convert SNAPSHOT OUT",
    "snapshot generate OUT --partitions 1000 --brokers 6",
    "whatif fail SNAPSHOT --brokers 2 --out OUT",
    "whatif sweep SNAPSHOT --out OUT",
    "whatif sweep SNAPSHOT --plot OUT.svg",
)
#: Commands that need an extra, and the module that it installs.
EXTRAS: Final = (
    ("snapshot convert SNAPSHOT OUT", "pyarrow"),
    ("snapshot generate OUT --partitions 10 --brokers 3", "pyarrow"),
    ("whatif fail SNAPSHOT --brokers 2 --out OUT", "pyarrow"),
    ("whatif sweep SNAPSHOT --out OUT", "pyarrow"),
    ("whatif sweep SNAPSHOT --plot OUT.svg", "matplotlib"),
    ("spark report FOLDER --plot OUT.svg", "matplotlib"),
    ("spark report FOLDER", "pyarrow"),
    *(
        (f"spark {verb}", module)
        for module in ("pyspark", "pyarrow")
        for verb in (
            "failover FOLDER --brokers 1",
            "ingest SNAPSHOT --out OUT",
            "requests FOLDER --brokers 1",
            "sweep FOLDER",
            "validate FOLDER",
        )
    ),
)


@pytest.mark.parametrize("line", PRINTING)
def test_standard_output_on_a_full_disk(line: str, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    with open("/dev/full", "wb", buffering=0) as full:
        output = io.TextIOWrapper(full, write_through=True)
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as ended:
            cli(words(line, files), prog_name="kframe")
        monkeypatch.undo()
        output.detach()
    shutil.rmtree(files["NEW"], ignore_errors=True)
    text = errors.getvalue()
    assert ended.value.code == 1, text
    assert text.endswith("error: standard output: No space left on device\n")
    assert "Traceback" not in text


@pytest.mark.parametrize("line", WRITING)
def test_files_on_a_full_disk(line: str, files: dict[str, str], tmp_path: Path) -> None:
    """The limit of file sizes acts as a full disk does. Nothing is left behind."""
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        result = run(words(line, {**files, "OUT": str(out)}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code in {1, 2}, result.output
    assert "Traceback" not in result.output
    assert str(out) in result.output
    assert "File too large" in result.output


@pytest.mark.parametrize("line, module", EXTRAS, ids=[f"{line} without {module}" for line, module in EXTRAS])
def test_missing_extras(
    line: str, module: str, files: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = [name for name in sys.modules if name.startswith(("kframe.spark", "kframe.whatif.sweep_"))]
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in hidden:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    result = run(words(line, {**files, "OUT": str(tmp_path / "out")}))
    assert (result.exit_code, "Traceback" in result.output) == (2, False), result.output
    assert module in result.output
    assert "pip install 'kframe-controller[" in result.output


@pytest.mark.extended
def test_interrupt_ends_all_processes_of_a_simulation() -> None:
    """Ctrl-C in a terminal goes to all processes of the command."""
    command = [sys.executable, "-c", INTERRUPTIBLE, "sim", "run", "--seeds", "1..90000", "--jobs", "2", "--each"]
    process = subprocess.Popen(
        [*command, "-o", "jsonl"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr.split()) == (130, ["error:", "interrupted"]), stderr
