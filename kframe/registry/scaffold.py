"""Writes a new plugin distribution from templates, like ``plugins/rack_spread``."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Final

from kframe import __version__
from kframe.errors import ConfigError, InputError
from kframe.registry.scaffold_plans import COST_TERM_MODULE, COST_TERM_TEST, GOAL_MODULE, GOAL_TEST
from kframe.registry.specs import NAME

_PYPROJECT: Final = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "kframe-$name"
version = "0.1.0"
description = "A $what for kframe"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["kframe-controller~=$version", "numpy>=2"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points.kframe]
$name = "$module"

[tool.setuptools]
py-modules = ["$module"]

[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
"""

_README: Final = """\
# kframe-$name

A $what for kframe, called `$name`.

    pip install -e '.[test]'
    kframe plugins list              # shows it
    kframe plugins check $name       # checks the rules that all keep
    pytest

$use
"""

_SELECTOR_USE: Final = """\
A controller uses it when its configuration names it, and validates each choice. Where a choice violates a safety rule,
or the selector raises, kframe's built-in rule decides, and the fault is logged and counted."""

_PLAN_USE: Final = """\
The option `--$option $name` of `kframe plan generate` uses it. Each result is validated, and an invalid one
ends the command."""

_MODULE: Final = '''\
"""A leader selector: document here which leaders it prefers, and why."""

from __future__ import annotations

from kframe.plugin import ElectionBatch, ElectionKind, Int32, SelectorSpec, Tier, hookimpl, take_first


class $classname:
    """The first candidate that is eligible and in sync, as Kafka's own rule."""

    name = "$name"

    def elect(self, batch: ElectionBatch, leader: Int32) -> None:
        """Write a broker index for each partition of the batch, or leave NO_LEADER."""
        take_first(batch.candidates, batch.may_lead, leader)


@hookimpl
def kframe_leader_selectors() -> list[SelectorSpec]:
    """Offer the selector."""
    return [
        SelectorSpec(
            name=$classname.name,
            tier=Tier.BULK,
            factory=$classname,
            kinds=(ElectionKind.OFFLINE, ElectionKind.INITIAL, ElectionKind.REASSIGN, ElectionKind.CONTROLLED_SHUTDOWN),
            doc="The first candidate that is eligible and in sync.",
        )
    ]
'''

_TEST: Final = '''\
"""The rules of every selector, and those of $name."""

from __future__ import annotations

from kframe.testing.selector_contract import SelectorContract
from $module import $classname, kframe_leader_selectors


class Test$classname(SelectorContract):
    """The rules of every selector."""

    kinds = kframe_leader_selectors()[0].kinds

    def make_selector(self) -> $classname:
        """A new selector."""
        return $classname()
'''


#: What a new plugin offers: its name in texts, how it is used, its module and its test.
TEMPLATES: Final[Mapping[str, tuple[str, str, str, str]]] = {
    "selector": ("leader selector", _SELECTOR_USE, _MODULE, _TEST),
    "cost-term": ("cost term of plans", _PLAN_USE, COST_TERM_MODULE, COST_TERM_TEST),
    "goal": ("goal of plans", _PLAN_USE, GOAL_MODULE, GOAL_TEST),
}


def new_plugin(directory: Path, name: str, offers: str = "selector") -> list[Path]:
    """Write the distribution of a plugin into ``directory`` and return its files.

    ``offers`` is a key of TEMPLATES; the selector, cost term or goal is called ``name``. Raises ConfigError, having
    written nothing, if the name is none (lower case, dashes) or the directory is there and not empty.
    """
    if not NAME.fullmatch(name) or "." in name:
        raise ConfigError("plugin name", repr(name), "lower-case letters and digits in words joined by dashes")
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise ConfigError("plugin directory", f"{directory}, which is not empty", "a new or empty directory")
    module = "kframe_" + name.replace("-", "_")
    classname = "".join(word.capitalize() for word in name.split("-"))
    what, use, module_template, test_template = TEMPLATES[offers]
    words = {"name": name, "module": module, "classname": classname, "version": __version__, "what": what}
    words["use"] = Template(use).substitute(words, option=offers.removesuffix("-term"))
    files = {
        "pyproject.toml": _PYPROJECT,
        "README.md": _README,
        f"{module}.py": module_template,
        f"tests/test_{name.replace('-', '_')}.py": test_template,
    }
    building = None
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        for file, template in files.items():
            path = building / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(Template(template).substitute(words))
        building.chmod(0o755)
        building.replace(directory)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise InputError(str(directory), reason, "a directory that can be written") from problem
    finally:
        if building is not None:
            shutil.rmtree(building, ignore_errors=True)  # Does not exist after success.
    return [directory / file for file in files]
