#!/bin/bash
# The jobs of a busy cluster: the same for a seed, in the order of submission, and as many GPU seconds as the load says.
set -euo pipefail
program=${SAILOR_BUILD_DIR:?}/bin/busy_workload
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
awk -v OFS=, 'BEGIN { srand(1); t = 0; print "submit_s,duration_s,gpus,cluster"
  for (i = 0; i < 3000; i++) { print t, int(exp(3 + 8 * rand())), int(1 + 8 * rand() * rand()), "x"; t += int(200 * rand()) } }' >trace.csv
for i in 1 2 3 4; do echo "a$i fast x 4"; done >nodes.txt
for i in 1 2; do echo "t$i small y 2"; done >>nodes.txt
jobs() { "$program" --jobs trace.csv --nodes nodes.txt --minutes 10 "$@"; }
# offered FILE WHAT: of the GPU seconds of ten minutes.
offered() {
  awk -F, -v what="$2" 'NR == 1 { next } $1 ~ what { left = 600 - $2; s += ($3 < left ? $3 : left) * $5 * ($6 == "fast" ? 4 : 2) }
    END { printf "%.2f", s / 600 / 20 }' "$1"
}
failed=0
check() { if [ "$2" = "$3" ]; then echo "ok: $1"; else echo "NOT OK: $1: $2, not $3"; failed=1; fi; }
jobs --seed 3 --load 0.8 >a.csv
jobs --seed 3 --load 0.8 >b.csv
check "the same for a seed" "$(cmp a.csv b.csv && echo same)" same
jobs --seed 4 --load 0.8 >b.csv
check "others for another seed" "$(cmp -s a.csv b.csv || echo differ)" differ
check "in order" "$(awk -F, 'NR > 2 && $2 < last { print NR } { last = $2 }' a.csv)" ""
check "within the minutes" "$(awk -F, 'NR > 1 && ($2 < 0 || $2 > 600 || $3 > 200 || $3 > 60 * $4) { print NR }' a.csv)" ""
check "no trainings" "$(grep -c training a.csv || true)" 0
awk "BEGIN { exit !($(offered a.csv .) >= 0.8 && $(offered a.csv .) < 0.9) }" || { echo "NOT OK: load $(offered a.csv .), not 0.8"; failed=1; }
jobs --seed 3 --load 0.8 --iterations 0.1,0.4 >t.csv
check "trainings" "$(awk -F, '$1 == "training" && ($7 < 200 || $7 > 1500 || $5 != 2 || $4 < 4) { print NR }' t.csv)" ""
awk "BEGIN { exit !($(offered t.csv other\|running) >= 0.7 && $(offered t.csv other\|running) < 0.8) }" ||
  { echo "NOT OK: load of others $(offered t.csv 'other|running')"; failed=1; }
check "a wrong number of iterations" "$(jobs --iterations 1 2>&1 || true)" "busy_workload: --iterations: 2 partitions, not 1"
check "a missing trace" "$("$program" --jobs none.csv --nodes nodes.txt 2>&1 || true)" "busy_workload: none.csv: cannot be read"
exit $failed
