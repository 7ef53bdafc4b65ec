"""Reference of the command line."""

from __future__ import annotations

from docs.generate.commands import CommandPage, command_tree
from docs.generate.markdown import code, escape, table
from kframe.cli.exits import EXIT_CODES


def command_line() -> str:
    """Return a section for each command, with its options."""
    return "".join(_section(page) for page in command_tree().walk())


def exit_codes() -> str:
    """Return the table of exit codes."""
    return table(["code", "meaning"], [[code(number), escape(meaning)] for number, meaning in EXIT_CODES])


def _section(page: CommandPage) -> str:
    level = min(2 + page.name.count(" "), 4)
    parts = [f"{'#' * level} {page.name}", f"    {' '.join(page.usage.split())}"]
    parts += [f"```text\n{text}```" if text.endswith("\n") else escape(text) for text in page.paragraphs]
    if page.subcommands:
        rows = [[f"[{sub.name}](#{sub.name.replace(' ', '-')})", escape(sub.summary)] for sub in page.subcommands]
        parts.append(table(["command", "purpose"], rows))
    if page.options:
        parts.append(table(["option", "meaning"], [[code(names), escape(text)] for names, text in page.options]))
    return "\n\n".join(parts) + "\n\n"
