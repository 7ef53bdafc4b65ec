"""The mutation catalogue: each mutant removes one protection from a copy of the tree, and tests must fail."""
