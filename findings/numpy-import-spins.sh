#!/usr/bin/env bash
# NumPy 2.4.6: after `import numpy`, each further processor works for about 0.1 s, although nothing is computed.
#
# The wheels contain OpenBLAS, which starts a thread for each further processor when it is loaded. A thread that has no
# work polls for it before it sleeps, for 2^28 cycles of the processor by default. So a short process that only imports NumPy
# takes twice the processor time on two cores, and a multiple of it on many, while its elapsed time is the same.
# OPENBLAS_THREAD_TIMEOUT=4 has the threads sleep after 2^4 cycles; OPENBLAS_NUM_THREADS=1 starts none.
#
# Seen on two processors: the other thread has used 0.09 to 0.11 s half a second after the import, and none with either
# variable. Needs two processors or more.
source "$(dirname "$0")/common/setup.sh"
cat > "$folder/spun.py" <<'SCRIPT'
import os
import time

import numpy  # noqa: F401

time.sleep(0.5)
ticks = 0
others = [task for task in os.listdir("/proc/self/task") if int(task) != os.getpid()]
for task in others:
    with open(f"/proc/self/task/{task}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    ticks += int(fields[11]) + int(fields[12])
seconds = ticks / os.sysconf("SC_CLK_TCK")
print(len(others) == len(os.sched_getaffinity(0)) - 1, seconds > 0.02 * len(others))
SCRIPT
python_packages numpy==2.4.6
check "more than one processor" "True" "$(python -c 'import os; print(len(os.sched_getaffinity(0)) > 1)')"
unset OPENBLAS_NUM_THREADS OPENBLAS_THREAD_TIMEOUT OMP_NUM_THREADS GOTO_NUM_THREADS
check "by default" "True True" "$(python "$folder/spun.py")"
check "with a timeout of 2^4 cycles" "True False" "$(OPENBLAS_THREAD_TIMEOUT=4 python "$folder/spun.py")"
check "with one thread" "False False" "$(OPENBLAS_NUM_THREADS=1 python "$folder/spun.py")"
