"""Configuration keys that options of ``kframe controller run`` set."""

from __future__ import annotations

from typing import Final

#: Keys of the controller id if no option gives it, in this order.
ID_KEYS: Final = ("broker.id", "node.id")
LISTENERS: Final = "listeners"
CREATE_CHROOT: Final = "kframe.create.chroot"
