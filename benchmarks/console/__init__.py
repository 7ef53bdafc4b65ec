"""The console with many partitions in Chromium, measured from the input to the paint."""
