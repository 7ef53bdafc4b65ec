"""Computations apart from the thread that serves requests, within bounds."""
