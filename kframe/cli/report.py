"""``--report FILE``: the result of a command as a page that needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kframe.cli.studies import PATH

if TYPE_CHECKING:
    from kframe.pages.shown import Shown

#: Adds the parameters ``page``, a path or None, and ``force``.
report_option: Final = click.option(
    "--report", "page", metavar="FILE", type=PATH, help="Also write an HTML page, which needs no network."
)
force_option: Final = click.option("--force", is_flag=True, help="Replace an existing FILE.")


def check_page(page: Path | None, *, force: bool) -> None:
    """Raise InputError unless the page may be written."""
    from kframe.whatif.files import check_file

    if page is not None:
        check_file(page, force=force)


def write_shown(page: Path | None, shown: Shown) -> None:
    """Write the page of an object, if there is a path. Raises InputError if the file cannot be written."""
    if page is not None:
        from kframe.pages.render import document

        write_page(page, document(shown.page()))


def write_page(page: Path, text: str) -> None:
    """Write a page. Raises InputError if the file cannot be written."""
    from kframe.whatif.files import replacing

    with replacing(page) as new:
        new.write_text(text, encoding="utf-8")
