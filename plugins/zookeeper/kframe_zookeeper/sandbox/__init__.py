"""The storage of the store's contract tests and of ``kframe plugins check``: a temporary folder of a real ZooKeeper,
with the changes that brokers and operators make."""
