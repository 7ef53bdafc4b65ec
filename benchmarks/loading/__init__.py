"""What reading a cluster from a file costs, by format."""
