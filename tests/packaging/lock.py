"""Write the versions and hashes of the dependency groups to ``requirements/``: ``python -m tests.packaging.lock``.

The files are valid for every supported Python and platform. ``ARGS=--upgrade`` takes newer versions.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import Final

from tests import tools
from tests.architecture.source import ROOT

_OPTIONS: Final = (
    "--quiet",
    "--universal",
    "--generate-hashes",
    "--no-header",
    "--no-emit-index-url",
    "--python-version",
    "3.11",
)


def groups() -> dict[str, list[str]]:
    """Return the requirements of each dependency group."""
    requirements: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    return requirements


def main() -> None:
    """Lock all groups."""
    uv = tools.group_bin("lock") / "uv"
    for group in groups():
        out = tools.REQUIREMENTS / f"{group}.txt"
        command = [uv, "pip", "compile", *_OPTIONS, *sys.argv[1:], "--group", group, "--output-file", out]
        subprocess.run([*map(str, command)], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        print(out.relative_to(ROOT))


if __name__ == "__main__":
    main()
