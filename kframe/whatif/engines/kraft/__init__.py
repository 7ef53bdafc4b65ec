"""The engine of a KRaft cluster: the decisions of its controller, committed to the metadata at once."""
