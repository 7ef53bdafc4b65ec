"""Plans in stages: which reassignments begin together, within limits of brokers and disks."""
