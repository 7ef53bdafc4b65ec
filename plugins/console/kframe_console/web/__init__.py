"""HTTP: parameters of requests, and responses in all formats."""
