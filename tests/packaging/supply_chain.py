"""The software bill of materials of a release, and the search for known vulnerabilities.

make sbom ARGS="dist kframe.cdx.json"     the bill of the wheels in dist/ with their dependencies
make audit                                fail if a dependency or tool has a known vulnerability
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests import tools
from tests.architecture.source import ROOT


def write_bill(environment: Path, out: Path) -> None:
    """Write a CycloneDX document (JSON) of the packages in a virtual environment."""
    program = tools.group_bin("security") / "cyclonedx-py"
    project = ROOT / "pyproject.toml"
    options = ["--pyproject", project, "--output-format", "JSON", "--output-reproducible", "--validate"]
    _run([program, "environment", *options, "--output-file", out, environment / "bin" / "python"])


def bill_of_wheels(wheels: Path, out: Path) -> None:
    """Install the wheels of a folder in a new environment, and write its bill."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = Path(scratch) / "environment"
        _run([sys.executable, "-m", "venv", "--without-pip", environment])
        names = sorted({path.name.split("-")[0].replace("_", "-") for path in wheels.glob("*.whl")})
        pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
        _run([*pip, "install", "--quiet", "--find-links", wheels, *names])
        write_bill(environment, out)


def audit(environment: Path, options: Sequence[str]) -> None:
    """Search for vulnerabilities of the packages in an environment and of all locked tools. Raises
    CalledProcessError."""
    program = tools.group_bin("security") / "pip-audit"
    (packages,) = environment.glob("lib/python3*/site-packages")
    locked = [option for path in sorted(tools.REQUIREMENTS.glob("*.txt")) for option in ("--requirement", path)]
    _run([program, *options, "--progress-spinner", "off", "--path", packages])
    _run([program, *options, "--progress-spinner", "off", "--require-hashes", "--disable-pip", *locked])


def _run(command: Sequence[object]) -> None:
    subprocess.run([*map(str, command)], check=True, cwd=ROOT)


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    bill = commands.add_parser("sbom")
    bill.add_argument("wheels", type=Path)
    bill.add_argument("out", type=Path)
    commands.add_parser("audit").add_argument("options", nargs="*")
    arguments = parser.parse_args()
    if arguments.command == "sbom":
        bill_of_wheels(arguments.wheels.resolve(), arguments.out.resolve())
    else:
        audit(Path(sys.prefix), arguments.options)


if __name__ == "__main__":
    main()
