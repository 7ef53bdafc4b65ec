#!/usr/bin/env bash
# Run the tests of kernels and decoders on kernels built with AddressSanitizer and UBSan: bash verification/sanitize.sh
# [ARGUMENTS OF PYTEST]. Needs GCC and `make setup`.
set -eu
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python library=$PWD/build/sanitize/lib
# Cython ignores the settings when it decides whether a module is up to date, so every build is new.
rm -rf build/sanitize
for folder in . plugins/*/; do
    if [ -f "$folder/setup.py" ]; then
        echo "sanitizing build of $folder"
        (cd "$folder" && KFRAME_SANITIZE=1 "$python" setup.py --quiet build --build-lib "$library")
    fi
done
# ASan must be loaded first, and Python must use malloc so that ASan sees each block. Freed blocks in a quarantine of the
# default size would count as memory of a fuzz case.
export PYTHONSAFEPATH=1 PYTHONPATH=$library PYTHONMALLOC=malloc HYPOTHESIS_PROFILE=brief KFRAME_FUZZ_CASES=100000
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 UBSAN_OPTIONS=print_stacktrace=1
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)" exec "$python" -m pytest \
    --benchmark-disable -m 'kernel and not real' ${@:-tests simulator plugins benchmarks/suite}
