"""Plain functions need no Spark, and all code uses only the API of Spark Connect."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import kframe.spark

FILES = sorted(Path(kframe.spark.__file__).parent.glob("*.py"))
#: Only this module uses Spark's own classes.
OF_SPARK = {"source"}


def test_plain_modules_load_no_pyspark() -> None:
    modules = [f"kframe.spark.{file.stem}" for file in FILES if file.stem not in {"__init__", *OF_SPARK}]
    program = f"import sys, {', '.join(modules)}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_modules_use_only_spark_connect_api(file: Path) -> None:
    words = r"\b(sparkContext|_jvm|_jdf|_sc)\b|\.(rdd|toPandas|collect)\b"
    assert re.findall(words, file.read_text()) == []
