"""The software bill of materials of a release, and the search for known vulnerabilities.

python -m tests.packaging.supply_chain sbom dist FILE    the bill of the wheels in dist/ with their dependencies
python -m tests.packaging.supply_chain audit             fail if a dependency or tool has a known vulnerability
"""

from __future__ import annotations

import argparse
import importlib.metadata
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


def dependencies(environment: Path) -> list[str]:
    """Return a line like ``numpy==2.4.6`` for each package in a virtual environment that is not of this repository."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    versions = {each.name: each.version for each in importlib.metadata.distributions(path=[str(packages)])}
    return sorted(f"{name}=={version}" for name, version in versions.items() if not name.startswith("kframe"))


def audit(environment: Path, options: Sequence[str]) -> None:
    """Search for vulnerabilities of the packages in an environment and of all locked tools.

    Raises CalledProcessError, also if the index does not know a package: that one was not searched for.
    """
    command = [tools.group_bin("security") / "pip-audit", "--strict", "--disable-pip", "--progress-spinner", "off"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.write("\n".join(dependencies(environment)))
        listed.flush()
        _run([*command, *options, "--no-deps", "--requirement", listed.name])
    locked = [option for path in sorted(tools.REQUIREMENTS.glob("*.txt")) for option in ("--requirement", path)]
    _run([*command, *options, "--require-hashes", *locked])


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
        return
    try:
        audit(Path(sys.prefix), arguments.options)
    except subprocess.CalledProcessError as failure:
        sys.exit(failure.returncode)  # pip-audit has said why.


if __name__ == "__main__":
    main()
