"""All pages, in the order of the navigation."""

from __future__ import annotations

from typing import Final

from kframe_console.pages import partitions
from kframe_console.pages.page import Page

PAGES: Final[tuple[Page, ...]] = (partitions.PAGE,)
