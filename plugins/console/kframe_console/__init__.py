"""A console in the browser for clusters of any size."""
