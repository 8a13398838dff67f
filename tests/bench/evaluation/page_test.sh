#!/bin/bash
# The page of tests/bench/paper with little effort: whole, well-formed, self-contained, and nothing in it is "nan".
# Exit code 77 without the reference data pack (SAILOR_REFERENCE).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
paper=$here/../paper
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"

# Without data it says so and writes nothing.
SAILOR_REFERENCE=/nowhere "$paper" --out "$out/none" 2> none.txt
grep -q '^skipped: no data' none.txt
[[ ! -e $out/none ]]
[[ -d ${SAILOR_REFERENCE:-} ]] || { echo "skipped: no data (SAILOR_REFERENCE)"; exit 77; }

printf 't,fault,target,detect_s,plan_s,groups_s,state_s,resume_s,lost_steps,pids_kept\n%s\n%s\n' \
  '1,kill,rank 1,0.25,0.125,0.5,1,2,0,1' '9,kill,rank 2,0.75,0.375,1.5,3,6,1,1' > chaos.csv
"$paper" --out "$out/page" --most-gpus 64 --cell-limit 0.3 --reconfiguration chaos.csv
python3 "$here/check_page.py" "$out/page" summary figure-1 figures-5-6 figure-7 figures-8-9 figure-10 figure-11 figure-12 \
  limits tables-1-3 scaling reconfiguration takeaways
grep -q '^from the fault to the next step,2,4,5.8,6$' "$out/page/reconfiguration-phases.csv"
# Ours are among the rows, and somebody to compare with.
grep -q '^homo-opt-32,ours,' "$out/page/one-type.csv"
grep -q '^homo-opt-32,"Sailor, published",' "$out/page/one-type.csv"
