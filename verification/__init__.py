"""What verifies kframe and its plugins, and no user installs: reference kernels, fuzzing, real and scripted servers,
campaigns on real clusters, helpers of tests. Commands run from a clone: ``python -m verification.kraft.fuzz``."""
