"""Helpers of tests in several folders: properties, sampled tables, pipes, loggers, descriptors, growth rates, and
controllers in a thread."""
