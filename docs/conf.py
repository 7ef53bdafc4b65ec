"""Settings of the documentation site, which ``make docs`` builds. ``docs/generate`` makes parts of it from the code."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import kframe  # noqa: E402

project = "kframe"
author = "The kframe authors"
copyright = "The kframe authors"
release = version = kframe.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "docs.generate"]
root_doc = "index"
# README.md is the list of pages on GitHub; docs.generate makes the navigation from it.
exclude_patterns = ["README.md"]
myst_heading_anchors = 6
smartquotes = False
myst_enable_extensions = ["colon_fence"]
nitpicky = True
# Links to other projects would need their inventories, and so a network.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "kframe"
html_static_path = ["_static"]
html_css_files = ["kframe.css"]
html_theme_options = {
    "source_repository": "https://github.com/kframe/kframe/",
    "source_branch": "main",
    "source_directory": "docs/",
}
html_copy_source = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
