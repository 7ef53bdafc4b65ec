"""The kernels in use: the compiled ones, or the naive twins if ``KFRAME_KERNELS=naive`` asks for them by name.

There is no silent fallback: without a compiler the import of ``kframe._core`` fails and says so.
"""

from __future__ import annotations

import os

if os.environ.get("KFRAME_KERNELS", "compiled") == "naive":
    from kframe._naive import *  # noqa: F403
    from kframe._naive_sweep import *  # noqa: F403
else:
    from kframe._core import *  # noqa: F403
    from kframe._hosting import *  # noqa: F403
    from kframe._state import *  # noqa: F403
    from kframe._sweep import *  # noqa: F403
