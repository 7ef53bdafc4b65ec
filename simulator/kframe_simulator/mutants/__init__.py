"""The mutation catalogue: each protection removed from a copy of the tree, and the tests that must notice."""
