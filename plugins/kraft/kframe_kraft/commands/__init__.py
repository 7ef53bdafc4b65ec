"""The commands ``kframe log`` and ``kframe kraft``. Their modules import what they need on first use."""
