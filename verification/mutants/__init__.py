"""Draws mutants of the core and of the reference kernels with cosmic-ray, and records those that no test notices."""
