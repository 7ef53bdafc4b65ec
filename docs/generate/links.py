"""Map links between pages and to files of the repository from GitHub's form to that of the site."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

SOURCE: Final = "https://github.com/kframe/kframe"
#: A fenced block, code in backticks, or the end of a link: a file name as its text, and its target.
_LINK: Final = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^ *(?P=fence)`*$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?:(?<=\[)(?P<name>[\w-]+\.md))?\]\((?P<target>[^)\s]+)\)",
    re.MULTILINE | re.DOTALL,
)


def site_links(text: str, page_folder: Path, docs: Path) -> str:
    """Return Markdown with the links of the site.

    Links to files outside ``docs`` lead to the source on GitHub, links to the list of pages, ``docs/README.md``, to the
    front page. A link whose text is the name of a page gets the title of the page. ``page_folder`` is the folder of the
    page. Targets that do not exist remain, so that Sphinx reports them.
    """

    def replace(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        target = _site_target(match["target"], page_folder, docs)
        titled = match["name"] is not None and not target.startswith(SOURCE)
        return f"{'' if titled else match['name'] or ''}]({target})"

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
