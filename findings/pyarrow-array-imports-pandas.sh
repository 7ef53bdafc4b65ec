#!/usr/bin/env bash
# PyArrow 26.0.1: the first pa.scalar or pa.array, even of the integer 0, imports pandas where it is installed, although
# nothing of pandas is passed or asked for.
#
# The conversion of Python values first asks whether they are of a type of pandas, and so loads the package. A process that
# converts a few values pays for it with memory and time, within its first conversion. Array.from_buffers makes the same
# array without pandas.
#
# Seen with pandas 2.3.3 and NumPy 2.4.6: pandas is loaded after pa.array of three integers, not after import pyarrow nor
# pa.Array.from_buffers; resident memory grows by 30 to 61 MB, and the call takes 0.3 to 1 s.
source "$(dirname "$0")/common/setup.sh"
cat > "$folder/loaded.py" <<'SCRIPT'
import sys
import time

import numpy as np
import pyarrow as pa


def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6


def is_loaded():
    return "pandas" in sys.modules


print(is_loaded())
numbers = np.arange(3)
buffers = pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
print(is_loaded())
before, begun = resident_mb(), time.perf_counter()
converted = pa.array([0, 1, 2])
seconds, grown = time.perf_counter() - begun, resident_mb() - before
print(is_loaded(), converted.equals(buffers), grown > 15)
print(f"{seconds:.2f} s, {grown:.0f} MB", file=sys.stderr)
SCRIPT
python_packages pyarrow==26.0.1 pandas==2.3.3 numpy==2.4.6
check "with pandas installed" "False False True True True" "$(python "$folder/loaded.py" | tr '\n' ' ' | sed 's/ $//')"
