"""How to install what an optional part of kframe needs."""

from __future__ import annotations


def pip_command(extra: str) -> str:
    """The command that installs an extra of kframe-controller."""
    return f"pip install 'kframe-controller[{extra}]'"
