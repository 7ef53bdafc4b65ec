"""The package's top level has its sub-packages and few other files."""

from __future__ import annotations

from tests.architecture.source import ROOT


def test_top_of_package_has_few_files() -> None:
    ignored = {".so", ".c", ".pyc"}
    files = {path.name for path in (ROOT / "kframe").iterdir() if path.is_file() and path.suffix not in ignored}
    assert files - {"__init__.py", "__init__.pyi"} == {"_core.pyi", "_core.pyx", "errors.py", "lazy.py", "py.typed"}


def test_all_distributions_build_by_same_definition() -> None:
    for folder in ("plugins/kafka_wire", "plugins/kraft", "plugins/zookeeper"):
        definition = ROOT / folder / "kframe_build.py"
        assert definition.is_symlink(), folder
        assert definition.resolve() == ROOT / "kframe_build.py"
