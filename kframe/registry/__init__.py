"""Finds plugins and resolves what they offer by name. A controller calls none of it after its start."""
