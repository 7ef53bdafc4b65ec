"""The extension module; ``pyproject.toml`` has everything else."""

from setuptools import Extension, setup

from kframe.plugin import include_dir

setup(ext_modules=[Extension("_last_in_sync", ["_last_in_sync.pyx"], include_dirs=[include_dir()])])
