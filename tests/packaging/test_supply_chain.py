"""Tools are locked by hashes, the bill of materials lists what is installed, and known vulnerabilities are errors."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tools
from tests.packaging.lock import groups
from tests.packaging.supply_chain import audit, dependencies, write_bill


def locked(group: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes by name."""
    text = (tools.REQUIREMENTS / f"{group}.txt").read_text()
    entries = re.findall(
        r"^([\w.-]+)==(\S+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE
    )
    assert len(entries) == len(re.findall(r"^\S", text, re.MULTILINE)), "each line is a requirement with hashes"
    return {name: (version, hashes.count("--hash")) for name, version, hashes in entries}


@pytest.mark.parametrize("group", groups())
def test_every_tool_is_locked_by_hashes(group: str) -> None:
    versions = locked(group)
    assert all(hashes for _, hashes in versions.values())
    for requirement in groups()[group]:
        name, _, version = requirement.partition("==")
        name = re.split(r"[<>=]", name)[0].lower()
        assert name in {each.lower() for each in versions}
        assert not version or versions[name][0] == version, "run `python -m tests.packaging.lock`"


@pytest.fixture(scope="module")
def security() -> None:
    try:
        tools.group_bin("security")
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))


@pytest.mark.real
@pytest.mark.extended
def test_bill_lists_product_and_its_dependencies(security: None, tmp_path: Path) -> None:
    write_bill(Path(sys.prefix), tmp_path / "bill.json")
    bill = json.loads((tmp_path / "bill.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "kframe-controller"
    components = {component["name"].lower(): component for component in bill["components"]}
    assert {"numpy", "msgspec", "kazoo", "kio", "kframe-zookeeper", "kframe-kafka-wire"} <= components.keys()
    assert all(component["version"] for component in components.values())
    assert components["kazoo"]["purl"].startswith("pkg:pypi/kazoo@")


def test_dependencies_exclude_own_distributions() -> None:
    names = {line.partition("==")[0] for line in dependencies(Path(sys.prefix))}
    assert {"numpy", "msgspec", "kazoo", "kio"} <= names
    assert not any(name.startswith("kframe") for name in names)


@pytest.mark.real
@pytest.mark.extended
def test_search_accepts_all_locks(security: None) -> None:
    audit(Path(sys.prefix), ["--dry-run"])


@pytest.mark.real
@pytest.mark.extended
def test_unknown_package_is_an_error(security: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise a search in an index without such data would find nothing and succeed."""
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    (packages / "no_such_package-1.0.dist-info").mkdir(parents=True)
    (packages / "no_such_package-1.0.dist-info" / "METADATA").write_text(
        "Name: no-such-package-of-any-index\nVersion: 1.0\n"
    )
    with pytest.raises(subprocess.CalledProcessError):
        audit(tmp_path, [])
    assert "no-such-package-of-any-index: Dependency not found" in capfd.readouterr().err
