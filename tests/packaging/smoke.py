"""Check an installed kframe without its source tree: version, plugins, a what-if, a demo, the console, manual pages.

``python tests/packaging/smoke.py [EXTRA ...]`` checks the installation of that interpreter, and the commands of extras.
It exits with 1 and a message if a command fails or prints something else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

#: Loads the installed package even if the current folder has a source tree.
KFRAME = (sys.executable, "-P", "-m", "kframe.cli")
#: For each extra a command that only its plugins offer, and a part of the output.
COMMANDS_OF_EXTRAS: dict[str, dict[tuple[str, ...], str]] = {
    "console": {("console", "--help"): "in the browser"},
    "kraft": {("log", "--help"): "metadata log"},
    "sim": {("sim", "run", "--seeds", "1"): "first seed"},
    "live": {("plugins", "list"): "kframe-kafka-wire"},
    "zookeeper": {("plugins", "list"): "kframe-zookeeper"},
}


def main() -> int:
    """Run the commands and return the exit code."""
    snapshot = files("kframe") / "snapshot" / "examples" / "kafka-3.9.1-six-brokers" / "healthy.topics-describe.txt.gz"
    commands: dict[tuple[str, ...], str] = {
        ("--version",): version("kframe-controller"),
        ("whatif", "fail", str(snapshot), "--brokers", "4"): "leaders moved",
        ("demo", "--partitions", "1000", "--brokers", "6"): "1,000 partitions on 6 brokers",
    }
    for extra in sys.argv[1:]:
        commands.update(COMMANDS_OF_EXTRAS.get(extra, {}))
    for arguments, expected in commands.items():
        completed = run(*arguments)
        if completed.returncode or expected not in completed.stdout:
            print(
                f"kframe {' '.join(arguments)}: exit code {completed.returncode}, expected {expected!r} in the output:"
            )
            print(completed.stdout + completed.stderr)
            return 1
    if "console" in sys.argv[1:] and (problem := console_problem()):
        print(problem)
        return 1
    rows = json.loads(run("plugins", "list", "-o", "json").stdout)["rows"]
    loaded = {row["plugin"] for row in rows if row["state"] == "loaded"}
    missing = {plugin.name for plugin in entry_points(group="kframe")} - loaded
    if missing:
        print(f"kframe plugins list: found no {', '.join(sorted(missing))}, expected all installed plugins")
    manual = Path(sys.prefix, "share", "man", "man1", "kframe.1")
    if not manual.is_file():
        print(f"{manual}: no such file, expected a manual page")
    return int(bool(missing) or not manual.is_file())


def console_problem() -> str:
    """Open the bundled example in a console, and fetch its overview. Returns what is wrong; empty if nothing is."""
    example = files("kframe") / "snapshot" / "examples" / "kafka-4.4-broker-failure"
    command = [*KFRAME, "console", str(example), "--no-browser", "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = re.search(r"http://\S+/", line)
            if address is None:
                return f"kframe console: found {line!r}, expected its address"
            with build_opener(ProxyHandler({})).open(address[0], timeout=60) as response:
                page = response.read().decode()
        finally:
            process.terminate()
    return "" if "Brokers by rack" in page else "kframe console: found another page, expected the overview"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``kframe ARGUMENTS``."""
    return subprocess.run([*KFRAME, *arguments], capture_output=True, text=True, check=False, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
