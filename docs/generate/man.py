"""Manual pages from the click tree: ``kframe.1``, and one for each of its commands: ``python -m docs.generate.man``.

They are no part of the source tree. ``make dist`` adds them to the source distributions, since the build of a wheel
cannot import ``kframe``. The pages of a command of a plugin are in the folder of its distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.generate.commands import CommandPage, command_tree
from kframe.cli.exits import EXIT_CODES

ROOT: Final = Path(__file__).resolve().parents[2]
#: Folders relative to ROOT.
FOLDER: Final = Path("docs/man")
#: Commands of plugins to the folders of their manual pages.
PLUGIN_FOLDERS: Final[Mapping[str, Path]] = {
    "kframe console": Path("plugins/console/man"),
    "kframe kraft": Path("plugins/kraft/man"),
    "kframe log": Path("plugins/kraft/man"),
    "kframe sim": Path("simulator/man"),
}


def manual_pages() -> dict[Path, str]:
    """The text of each manual page by its path relative to the source tree."""
    root = command_tree()
    names = [page.name for page in (root, *root.subcommands)]
    pages = {}
    for page in (root, *root.subcommands):
        path = PLUGIN_FOLDERS.get(page.name, FOLDER) / f"{page.name.replace(' ', '-')}.1"
        others = [name for name in names if name != page.name and (page is root or name == "kframe")]
        pages[path] = "".join(f"{line}\n" for line in _lines(page, page is root, others))
    return pages


def write_manual_pages(root: Path) -> None:
    """Write all manual pages under ``root``, and remove those of former commands."""
    pages = manual_pages()
    folders = (FOLDER, *PLUGIN_FOLDERS.values())
    for path in {path.relative_to(root) for folder in folders for path in (root / folder).glob("*.1")} - pages.keys():
        (root / path).unlink()
    for path, text in pages.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def _lines(page: CommandPage, is_root: bool, others: Iterable[str]) -> Iterator[str]:
    title = page.name.replace(" ", "-")
    yield f'.TH {title.upper()} 1 "" kframe "kframe manual"'
    yield ".SH NAME"
    yield f"{_text(title)} \\- {_text(page.summary.rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield f".B {_text(page.usage)}"
    yield ".SH DESCRIPTION"
    yield from _paragraphs(page.paragraphs)
    if page.options:
        yield ".SH OPTIONS"
        yield from _options(page.options)
    if page.subcommands:
        yield ".SH COMMANDS"
        yield from _index(page.subcommands) if is_root else _subcommands(page)
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_CODES:
        yield from (".TP", f".B {code}", _text(meaning))
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR {_text(name.replace(' ', '-'))} (1)" for name in others).replace("(1),", "(1) ,")


def _index(commands: Iterable[CommandPage]) -> Iterator[str]:
    for command in commands:
        yield from (".TP", f".BR {_text(command.name.replace(' ', '-'))} (1)", _text(command.summary))


def _subcommands(page: CommandPage) -> Iterator[str]:
    for command in [below for below in page.walk() if below is not page and not below.subcommands]:
        yield f".SS {_text(command.usage)}"
        yield from _paragraphs(command.paragraphs)
        yield from _options(command.options)


def _paragraphs(paragraphs: Iterable[str]) -> Iterator[str]:
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        if paragraph.endswith("\n"):
            yield from (".nf", *map(_text, paragraph.splitlines()), ".fi")
        else:
            yield _text(paragraph)


def _options(options: Iterable[tuple[str, str]]) -> Iterator[str]:
    for names, meaning in options:
        yield from (".TP", f".B {_text(names)}", _text(" ".join(meaning.split())))


def _text(text: str) -> str:
    """Return ``text`` for roff: a hyphen can be copied, and no line begins with a control character."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    write_manual_pages(ROOT)
