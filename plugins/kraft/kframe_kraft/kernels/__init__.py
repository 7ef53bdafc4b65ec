"""The compiled code between columns and record bytes; ``verification/reference`` has the references."""
