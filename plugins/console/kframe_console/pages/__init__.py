"""The pages of the console: each has a module here, a template, and a line in ``routes.py``."""
