"""The public objects for programs that embed a controller; ``kframe`` exports all of them by name."""
