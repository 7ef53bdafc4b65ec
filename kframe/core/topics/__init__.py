"""Topics as storage has them: assignments, ids, placement, validation and deletion."""
