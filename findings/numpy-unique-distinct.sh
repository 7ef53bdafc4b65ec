#!/usr/bin/env bash
# NumPy 2.4.6: np.unique of integers that mostly differ takes several times as long as with return_index=True, which asks
# for more, and a hundred times as long as sorting them.
#
# Without further results np.unique puts integers into a hash table (since 2.3) and sorts what is in it; with indexes it
# only sorts. The table pays off where values repeat. It costs most where none does, as in a check for duplicates.
#
# Seen for 2^20 int32 that all differ: 5 to 8 times as long as with indexes, 149 to 266 times as long as np.sort; by NumPy
# 2.2.6 a tenth of the time with indexes, and 1 to 3 times as long as np.sort.
source "$(dirname "$0")/common/setup.sh"
cat > "$folder/factors.py" <<'EOF'
import sys
import time

import numpy as np

values = np.random.default_rng(1).permutation(2**20).astype(np.int32)


def seconds(work):
    durations = []
    for _ in range(5):
        begun = time.perf_counter()
        result = work()
        durations.append(time.perf_counter() - begun)
    return min(durations), result


alone, distinct = seconds(lambda: np.unique(values))
indexed, (same, _) = seconds(lambda: np.unique(values, return_index=True))
ordered, _ = seconds(lambda: np.sort(values))
assert np.array_equal(distinct, same)
print(f"{np.__version__}: {alone / indexed:.1f} and {alone / ordered:.0f} times as long", file=sys.stderr)
print(alone > 2 * indexed, alone > 20 * ordered)
EOF
python_packages numpy==2.4.6
check "NumPy 2.4.6: longer than with indexes, much longer than sorting" "True True" "$(python "$folder/factors.py")"
python_packages numpy==2.2.6
check "NumPy 2.2.6: longer than with indexes, much longer than sorting" "False False" "$(python "$folder/factors.py")"
