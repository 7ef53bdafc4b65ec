"""Reference of the plugin hooks and what they offer."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from docs.generate.markdown import prose
from kframe.registry.hookspecs import KframeHooks


def plugin_hooks() -> str:
    """Return a section for each hook, with the complete plugin of its docstring."""
    return "\n\n".join(_section(hook) for hook in hooks())


def hooks() -> list[Callable[..., Any]]:
    """Return the hook specifications in order."""
    return [member for name, member in vars(KframeHooks).items() if name.startswith("kframe_")]


def hook_example(hook: Callable[..., Any]) -> str:
    """Return the plugin in the docstring of a hook."""
    return textwrap.dedent(_parts(hook)[1])


def _parts(hook: Callable[..., Any]) -> tuple[str, str]:
    text, _, example = (inspect.getdoc(hook) or "").partition("::\n\n")
    return text, example


def _section(hook: Callable[..., Any]) -> str:
    paragraphs = "\n\n".join(map(prose, _parts(hook)[0].split("\n\n")))
    return f"## {hook.__name__}\n\n{paragraphs}:\n\n```python\n{hook_example(hook)}\n```"
