"""The encoding kernels in use: the compiled ones, or the naive twins if ``KFRAME_KERNELS=naive`` asks for them by name.

There is no silent fallback: without a compiler the import of ``kframe._wire`` fails and says so.
"""

from __future__ import annotations

import os

if os.environ.get("KFRAME_KERNELS", "compiled") == "naive":
    from kframe._naive_wire import *  # noqa: F403
else:
    from kframe._wire import *  # noqa: F403
    from kframe._wire_sections import *  # noqa: F403
