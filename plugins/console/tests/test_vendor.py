"""The vendored scripts are the files that ``vendor.toml`` lists, and no others."""

from __future__ import annotations

import hashlib

from verification.console.vendor import FOLDER, packages


def test_vendored_files_have_the_listed_hashes() -> None:
    listed = {entry["name"]: entry["sha256"] for package in packages() for entry in package["file"]}
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()}
    del files["vendor.toml"]
    assert files == listed


def test_each_vendored_package_has_a_licence_file() -> None:
    assert packages()
    for package in packages():
        assert package["licence"]
        assert any(entry["source"] == "LICENSE" for entry in package["file"]), package["name"]
