"""Tables of columns that stay on the server: windows, sort orders and filters."""
