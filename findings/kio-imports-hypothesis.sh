#!/usr/bin/env bash
# kio 0.6.2: importing a message of Kafka's protocol also imports Hypothesis, if that is installed.
#
# kio.static.primitive registers strategies of Hypothesis for its types when it is imported, wherever the package is there.
# A program then loads a library for tests, with more modules than its own.
#
# Seen: "without: hypothesis False", "beside it: hypothesis True", and more than twice as many modules.
source "$(dirname "$0")/common/setup.sh"
python_packages kio==0.6.2
program='
import sys
from kio.schema.metadata.v12.request import MetadataRequest
print("hypothesis" in sys.modules, len(sys.modules))
'
read -r loaded modules <<<"$(python -c "$program")"
check "Hypothesis without the package" "False" "$loaded"
pip install --quiet --disable-pip-version-check hypothesis==6.170.17
read -r loaded beside <<<"$(python -c "$program")"
check "Hypothesis beside it" "True" "$loaded"
check "at least twice as many modules" "yes" "$([ "$beside" -ge $((2 * modules)) ] && echo yes || echo "no: $modules, then $beside")"
