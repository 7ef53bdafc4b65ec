"""A wheel of kframe, built from the source distribution, runs where there is no compiler."""

from __future__ import annotations

import shutil
import sys
import sysconfig
import tarfile
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

import kframe
from tests import tools
from tests.architecture.source import ROOT
from tests.packaging import distributions

#: Largest source distribution, in bytes. The tests' records would exceed it.
SOURCES_MOST = 3_000_000
#: Largest wheel of the console, in bytes.
CONSOLE_MOST = 1_500_000


def unpack_compiled(archive: Path, folder: Path, distribution: Path) -> Path:
    """Unpack a source distribution, and add the modules of the tree, so that they are not compiled again."""
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    tree = ROOT / distribution
    packages = [path for path in tree.iterdir() if (path / "__init__.py").exists()]
    release = Path("build") / "release"
    for path in (tree / release).rglob("*.c"):
        copy(path, unpacked / path.relative_to(tree))
    library = release / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    for package in packages:
        for path in package.rglob("*.so"):
            copy(path, unpacked / library / path.relative_to(tree))
    return unpacked


def copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distributions, as ``make dist`` writes it, but with the compiled modules of the tree."""
    folder = tmp_path_factory.mktemp("distributions")
    out = folder / "dist"
    out.mkdir()
    try:
        for distribution in distributions.FOLDERS:
            source = distributions.source_distribution(distribution, out)
            unpacked = unpack_compiled(source, folder / source.name, distribution)
            distributions.build_wheels(Path(sys.executable), [unpacked], out, "--no-build-isolation")
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))
    return out


@pytest.mark.real
@pytest.mark.extended
def test_wheels_run_without_compiler(wheels: Path) -> None:
    (wheel,) = wheels.glob("kframe_controller-*.whl")
    (source,) = wheels.glob("kframe_controller-*.tar.gz")
    assert source.stat().st_size < SOURCES_MOST
    assert "manylinux" in wheel.name or sys.platform != "linux"
    distributions.install_and_run(Path(sys.executable), wheels)


@pytest.mark.real
@pytest.mark.extended
def test_extra_brings_a_console_that_opens_the_bundled_example(wheels: Path) -> None:
    (wheel,) = wheels.glob("kframe_console-*.whl")
    assert wheel.stat().st_size <= CONSOLE_MOST
    distributions.install_and_run(Path(sys.executable), wheels, ["console"])


class ImpostorIndex(SimpleHTTPRequestHandler):
    """An index that offers a newer and the same version of each of kframe's distributions, and records requests."""

    requested: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """List two wheels for each project of kframe's, and refuse all else."""
        project = self.path.strip("/").split("/")[-1]
        self.requested.append(project)
        is_listed = project.startswith("kframe-")
        name = project.replace("-", "_")
        links = [
            f'<a href="/{name}-{version}-py3-none-any.whl">{name}</a>' for version in (kframe.__version__, "9.9.9")
        ]
        body = ("<html><body>" + "".join(links) + "</body></html>").encode() if is_listed else b""
        self.send_response(HTTPStatus.OK if is_listed else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.mark.real
@pytest.mark.extended
def test_extras_bring_commands_and_fetch_no_plugin_from_an_index(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), ImpostorIndex) as index:
        Thread(target=index.serve_forever, daemon=True).start()
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"http://127.0.0.1:{index.server_port}/")
        distributions.install_and_run(Path(sys.executable), wheels, ["kraft", "live", "sim"])
        index.shutdown()
    assert [name for name in ImpostorIndex.requested if name.endswith(".whl")] == []
    assert "click" in ImpostorIndex.requested, "pip must have asked this index"


@pytest.mark.real
@pytest.mark.extended
def test_plugin_source_distribution_has_build_definition(tmp_path: Path) -> None:
    """In the tree it is a symbolic link, which would lead nowhere in another folder."""
    try:
        archive = distributions.source_distribution(Path("plugins/zookeeper"), tmp_path)
    except tools.ToolMissing as missing:
        pytest.skip(str(missing))
    with tarfile.open(archive) as sources:
        (definition,) = [member for member in sources.getmembers() if member.name.endswith("/kframe_build.py")]
    assert definition.isfile()
