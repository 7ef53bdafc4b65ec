"""Map links between pages and to files of the repository from GitHub's form to that of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

SOURCE: Final = "https://github.com/kframe/kframe"
#: A fenced block, code in backticks, or the target of a link.
_LINK: Final = re.compile(
    r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)`*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<=\]\()(?P<target>[^)\s]+)(?=\))",
    re.MULTILINE | re.DOTALL,
)


def link_to_source(text: str, page_folder: Path, docs: Path) -> str:
    """Return Markdown whose links to files outside ``docs`` lead to the source on GitHub.

    ``page_folder`` is the folder of the page. Links to the list of pages, ``docs/README.md``, lead to the front page.
    Targets that do not exist remain, so that Sphinx reports them.
    """

    def replace(match: re.Match[str]) -> str:
        return match[0] if match["target"] is None else _site_target(match["target"], page_folder, docs)

    return _LINK.sub(replace, text)


def _site_target(target: str, page_folder: Path, docs: Path) -> str:
    name, hash_sign, anchor = target.partition("#")
    if not name or "://" in name or name.startswith("mailto:"):
        return target
    path = Path(os.path.normpath(page_folder / name))
    if path == docs / "README.md":
        return os.path.relpath(docs / "index.md", page_folder)
    if not path.exists() or (path.is_relative_to(docs) and path.suffix in {".md", ".svg", ".png"}):
        return target
    kind = "tree" if path.is_dir() else "blob"
    return f"{SOURCE}/{kind}/main/{path.relative_to(docs.parent)}{hash_sign}{anchor}"
