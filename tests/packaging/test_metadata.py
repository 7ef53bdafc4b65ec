"""Metadata of the distributions: versions, requirements on each other, project URLs and classifiers."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

import pytest
import yaml

import kframe
from kframe.registry.known_plugins import KNOWN_PLUGINS, KnownPlugin
from tests.architecture.source import ROOT

FOLDERS: Final = (".", "simulator", *(f"plugins/{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml")))
#: Python versions that the distributions support.
PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
REQUIREMENT: Final = re.compile(r"(?P<name>kframe-[a-z-]+)(\[[a-z,]+\])?(?P<specifier>.*)")
#: The plugins that each extra of kframe-controller installs.
PLUGINS_OF_EXTRAS: Final = {
    "zookeeper": {"kframe-zookeeper"},
    "live": {"kframe-kafka-wire", "kframe-zookeeper"},
    "kraft": {"kframe-kafka-wire", "kframe-kraft"},
    "console": {"kframe-console", "kframe-kafka-wire", "kframe-kraft"},
    "sim": {"kframe-simulator"},
    "all": {"kframe-console", "kframe-kafka-wire", "kframe-kraft", "kframe-simulator", "kframe-zookeeper"},
}


def project(folder: str) -> dict[str, Any]:
    """Return the table ``project`` of a distribution's ``pyproject.toml``."""
    table: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return table


def requirements(folder: str) -> list[re.Match[str]]:
    """Return the requirements of a distribution on other ``kframe-*`` distributions, extras included."""
    table = project(folder)
    extras = table.get("optional-dependencies", {}).values()
    texts = [text for group in (table["dependencies"], *extras) for text in group]
    matches = [match for text in texts if (match := REQUIREMENT.fullmatch(text))]
    return [match for match in matches if match["name"] != table["name"]]


@pytest.mark.parametrize("folder", FOLDERS)
def test_distributions_have_version_of_kframe(folder: str) -> None:
    table = project(folder)
    if folder == ".":
        assert table["dynamic"] == ["version"]
    else:
        assert table["version"] == kframe.__version__


@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "."])
def test_requirements_between_distributions_are_compatible_releases(folder: str) -> None:
    specifiers = {match["name"]: match["specifier"] for match in requirements(folder)}
    assert "kframe-controller" in specifiers
    assert set(specifiers.values()) == {f"~={kframe.__version__}"}


def plugins_of(extra: str) -> dict[str, str]:
    """The plugins that an extra of kframe-controller requires, directly or by another extra, with their versions."""
    plugins: dict[str, str] = {}
    for text in project(".")["optional-dependencies"][extra]:
        match = REQUIREMENT.fullmatch(text)
        if match is not None and match["name"] == "kframe-controller":
            for other in text[text.index("[") + 1 : text.index("]")].split(","):
                plugins |= plugins_of(other)
        elif match is not None:
            plugins[match["name"]] = match["specifier"]
    return plugins


@pytest.mark.parametrize("extra", sorted(project(".")["optional-dependencies"]))
def test_extras_name_plugins_of_the_same_version(extra: str) -> None:
    assert plugins_of(extra) == dict.fromkeys(PLUGINS_OF_EXTRAS.get(extra, ()), f"=={kframe.__version__}")


def test_kframe_itself_requires_no_plugin() -> None:
    assert not any(text.startswith("kframe-") for text in project(".")["dependencies"])


@pytest.mark.parametrize("plugin", KNOWN_PLUGINS, ids=lambda plugin: plugin.distribution)
def test_hints_name_an_extra_that_installs_the_plugin(plugin: KnownPlugin) -> None:
    assert plugin.distribution in plugins_of(plugin.extra)


def test_citation_has_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == kframe.__version__


def test_wheels_are_built_for_each_supported_python() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    assert settings["build"].split() == [f"cp{version.replace('.', '')}-*" for version in PYTHONS]
