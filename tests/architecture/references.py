"""Find references to documents, paths, tests, commands, make targets and configuration keys that do not exist."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeAlias

from tests.architecture.source import ROOT, definitions, tracked_files
from tests.docs.command_lines import usage_error, words

#: A check yields the offset and the name of each reference that does not resolve.
Check: TypeAlias = "Callable[[Path, str], Iterator[tuple[int, str]]]"

RULES: Final = ROOT / "docs" / "reference" / "controller"
BOOKS: Final = {path.stem: path for path in RULES.glob("*.md")}

DOCUMENT: Final = re.compile(r"(?<![\w/.-])(?P<path>(?:\.\./)*[\w-][\w./-]*\.md)\b")
SECTION: Final = re.compile(
    r"(?P<page>[\w./-]+\.md)`*\)?,?\s+(?:sections?\s+)?(?P<numbers>\d+(?:\.\d+)?(?:(?:,| and| to) \d+(?:\.\d+)?)*)"
)
RULE: Final = re.compile(
    r"\b(?P<book>state-machines|elections|wire|zookeeper|broker-partition|controller) "
    r"(?P<number>\d+(?:\.\d+)?)(?=:|[);,]| to \d)"
)
LINK: Final = re.compile(r"\]\((?P<target>[^)\s]+)\)")
PATH: Final = re.compile(
    r"(?<![\w/.\x22-])(?P<path>(?:kframe|tests|plugins|benchmarks|examples|simulator|docs)/[\w./-]*[\w/])"
)
TEST: Final = re.compile(r"`(?P<name>test_\w+)`")
MAKE: Final = re.compile(r"(?:^|`)make (?:-\w+ )*(?P<target>[a-z][\w-]*)", re.MULTILINE)
MODULE: Final = re.compile(r"\bpython3? -m (?P<name>(?:kframe|benchmarks|tests)[\w.]*)")
BLOCK: Final = re.compile(r"^```(?:text|sh)\n(?P<lines>.+?)^```", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"`(?:\.venv/bin/)?kframe (?P<words>[a-z][^`\n#]*)`")
KEY: Final = re.compile(r"`(?P<key>kframe\.[a-z]+(?:\.[a-z]+)+)(?:=[^`]*)?`")


def visible_matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Return matches within backticks or in a code block."""
    blocks = [range(*match.span()) for match in BLOCK.finditer(text)]
    for match in pattern.finditer(text):
        if text[match.start()] == "`" or any(match.start() in block for block in blocks):
            yield match


@cache
def headings(page: Path) -> frozenset[str]:
    """Return GitHub's anchors of a page, and the numbers of its sections."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return frozenset(anchors | {title.split()[0].rstrip(".") for title in titles})


@cache
def page_names() -> frozenset[str]:
    """File names of all pages, for references by name alone."""
    return frozenset(path.name for path in tracked_files(".md"))


def document(name: str, source: Path) -> Path | None:
    """Resolve a page in ``source``: relative to the root, docs/ or its own folder, or by file name."""
    pages = [path for path in tracked_files(".md") if path.name == name] if name in page_names() else []
    candidates = (ROOT / name, source.parent / name, ROOT / "docs" / name, *pages)
    return next((path for path in candidates if path.is_file()), None)


def documents(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in DOCUMENT.finditer(text):
        generated = path.suffix == ".py" and match["path"].startswith("../")  # text of a generated page
        is_exempt = generated or "no-such" in match["path"]
        if not is_exempt and document(match["path"], path) is None:
            yield match.start(), match["path"]


def sections(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in SECTION.finditer(text):
        page = document(match["page"], path)
        for number in re.findall(r"\d+(?:\.\d+)?", match["numbers"]):
            if page is not None and number not in headings(page):
                yield match.start(), f"{match['page']} section {number}"


def rules(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in RULE.finditer(text):
        unnumbered = match["book"] == "controller" and "." not in match["number"] and int(match["number"]) > 16
        if not unnumbered and match["number"] not in headings(BOOKS[match["book"]]):
            yield match.start(), match[0]


def links(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in LINK.finditer(text):
        target, _, anchor = match["target"].partition("#")
        if "://" in target:
            continue
        page = path.parent / target if target else path
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in headings(page)):
            yield match.start(), match["target"]


def paths(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in PATH.finditer(text):
        name = match["path"].rstrip("./")
        if "no-such" in name:
            continue
        pattern = text[match.end() : match.end() + 1] in set("*{<") or re.search(r"\b[A-Z]{2,}\b", name)
        target = ROOT / (name.rpartition("/")[0] if pattern else name)
        if not target.exists() and not list(target.parent.glob(f"{target.name}.*")):
            yield match.start(), name


@cache
def all_tests() -> frozenset[str]:
    """Return the names of all test functions and test modules."""
    files = [path for path in tracked_files(".py") if path.name.startswith("test_")]
    functions = (name for path in files for name, *_ in definitions(path.read_text()).functions)
    return frozenset(functions) | {path.stem for path in files}


def tests_named(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in TEST.finditer(text):
        if match["name"] not in all_tests():
            yield match.start(), match["name"]


@cache
def make_targets() -> frozenset[str]:
    rules = re.findall(r"^([a-z][\w -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return frozenset(target for rule in rules for target in rule.split())


def targets(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in visible_matches(MAKE, text):
        if match["target"] not in make_targets():
            yield match.start(), match[0]


def modules(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in MODULE.finditer(text):
        try:
            exists = find_spec(match["name"].rstrip(".")) is not None
        except ModuleNotFoundError:
            exists = False
        if not exists:
            yield match.start(), match[0]


def commands(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Check command lines in backticks, which may lack arguments. ``tests/docs`` checks those of code blocks."""
    for match in COMMAND.finditer(text):
        error = usage_error(words(match["words"]), complete=False)
        if error is not None:
            yield match.start(), f"{match[0]}: {error}"


@cache
def known_keys() -> frozenset[str]:
    """Return dotted names in string literals of the product."""
    files = [path for path in tracked_files(".py") if "tests" not in path.relative_to(ROOT).parts]
    return frozenset(key for path in files for key in re.findall(r"\"(kframe(?:\.[a-z]+)+)", path.read_text()))


def keys(path: Path, text: str) -> Iterator[tuple[int, str]]:
    for match in KEY.finditer(text):
        name = match["key"]
        parent = ROOT / Path(*name.split(".")[:-1])
        module = (ROOT / Path(*name.split("."))).exists() or parent.is_dir() or parent.with_suffix(".py").exists()
        if name not in known_keys() and not module:
            yield match.start(), name
