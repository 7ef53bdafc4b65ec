"""Computations outside the thread that serves requests, bounded in number."""
