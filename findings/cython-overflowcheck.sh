#!/usr/bin/env bash
# Cython 3.3.1: overflowcheck=True does not see a 32-bit integer overflow by a constant.
#
# The directive checks an operation in the type that C computes it in. A constant is a C long, so i + 1 of an int32_t is
# computed in 64 bits, where it fits. The assignment back to 32 bits is not part of the check and drops the high bits.
# The same holds for i += 1, for elements of memory views, for subtraction below 0 of a uint32_t, and for two int16_t.
# The same overflow by an int32_t variable raises OverflowError. (Measured where a C long has 64 bits.)
#
# Seen: 2147483647 + 1 by a constant gives -2147483648; by a variable it raises OverflowError.
source "$(dirname "$0")/common/setup.sh"
python_packages cython==3.3.1 setuptools==80.9.0
cat >"$folder/overflow.pyx" <<'EOF'
# cython: overflowcheck=True, language_level=3
from libc.stdint cimport int16_t, int32_t, uint32_t

def by_constant(int32_t value):
    value = value + 1
    return value

def in_place(int32_t value):
    value += 1
    return value

def of_element(int32_t[:] values):
    values[0] += 1
    return values[0]

def below_zero(uint32_t value):
    value -= 1
    return value

def of_narrow(int16_t value, int16_t step):
    value += step
    return value

def by_variable(int32_t value, int32_t step):
    value += step
    return value
EOF
(cd "$folder" && cythonize --quiet --inplace overflow.pyx >build.log 2>&1) || { cat "$folder/build.log" >&2; exit 1; }
result=$(cd "$folder" && python - <<'EOF'
from array import array

import overflow

largest = 2**31 - 1
print(overflow.by_constant(largest), overflow.in_place(largest), overflow.of_element(array("i", [largest])))
print(overflow.below_zero(0), overflow.of_narrow(2**15 - 1, 1))
try:
    print(overflow.by_variable(largest, 1))
except OverflowError as error:
    print(type(error).__name__)
EOF
)
check "overflows by a constant, of narrow types, by a variable" "-2147483648 -2147483648 -2147483648
4294967295 -32768
OverflowError" "$result"
