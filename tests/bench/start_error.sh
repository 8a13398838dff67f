#!/bin/bash
# The start that a planned submission states against the real one, on a throw-away cluster that other jobs keep full: their nodes, partitions
# and time limits (one to four minutes) are random, and some of them always wait. Prints
#
#     submission,stated_s,real_s,error_s,slurm_s
#
# and as the last lines the median of the errors (without sign), of the waits, and of the errors as a part of their wait, and the same for
# slurm_s: what Slurm itself expects (squeue --start) once it has planned the job, a few seconds after the submission.
#
# usage: tests/bench/start_error.sh [--submissions N] [--seed S] [--used PERCENT]      default 50, 1, 100
#     --used PERCENT   other jobs end after at least this part of their time limit
set -euo pipefail
submissions=50 seed=1 used=100
while [ $# -gt 0 ]; do
  case $1 in
    --submissions) submissions=$2; shift ;;
    --seed) seed=$2; shift ;;
    --used) used=$2; shift ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
export SAILOR_BUILD_DIR=${SAILOR_BUILD_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
export SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-start-error.XXXXXX")
"$(dirname "${BASH_SOURCE[0]}")/../cluster.sh" up --nodes 15 >/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
trap 'leave; "$e2e/../cluster.sh" down >/dev/null' EXIT
RANDOM=$seed
kMostWaiting=4

between() { echo $(($1 + RANDOM % ($2 - $1 + 1))); }  # LEAST MOST
other_job() {
  local partitions=(fast medium small) limit runs
  limit=$(between 1 4)
  runs=$((limit * 60 * $(between "$used" 100) / 100 - 2))
  run sbatch -p "${partitions[RANDOM % 3]}" -N "$(between 1 3)" --exclusive -t "$limit" -J other -o /dev/null --wrap "sleep $runs"
}
keep_full() { while [ "$(squeue -h -t PD -n other -o %A | wc -l)" -lt $kMostWaiting ]; do other_job; done; }
# The start that Slurm knows or expects, as soon as it has one.
expected_of() {
  local start tries
  for tries in 1 2 3 4 5; do
    sleep 1
    start=$(squeue -h -j "$1" -o %S | head -1)
    case $start in '' | N/A) ;; *) date -d "$start" +%s; return ;; esac
  done
}
start_of() { date -d "$(scontrol show job -o "$1" | sed -n 's/.* StartTime=\([^ ]*\).*/\1/p' | head -1)" +%s; }

printf '#!/bin/bash\nsleep %d\n' $((60 * $(between "$used" 100) / 100 - 2)) >body.sh
echo submission,stated_s,real_s,error_s,slurm_s
ids=() stated=() since=() real=() slurm=()
for ((i = 0; i < submissions; i++)); do
  keep_full
  now=$(date +%s)
  [ -z "${LOG_DIR:-}" ] || queue=$(squeue -h -o '%i %j %T %P %D %l %S %e %N %Y %r' --sort=S)
  run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -t 1 -o /dev/null body.sh
  id=$(sed -n 's/^Submitted batch job //p' <<<"$out")
  [ -n "$id" ] || { echo "$err" >&2; exit 1; }
  wait_s=$(sed -n 's/.*starts: wait \([0-9]*\) \(s\|min\) for.*/\1 \2/p' <<<"$err" | awk '{ print $2 == "s" ? $1 : 60 * $1 }')
  ids+=("$id") stated+=("${wait_s:-0}") since+=("$now")
  expected=$(expected_of "$id")
  slurm+=("${expected:+$((expected - now))}")
  [ -z "${LOG_DIR:-}" ] || { echo "== $i $id now $now"; echo "$err" | grep -E 'starts:|planned for' || true; echo "$queue"; echo --; squeue -h -o '%i %j %T %P %D %l %S %e %N %Y %r' --sort=S; } >>"$LOG_DIR/log"
  sleep "$(between 10 30)"
  for ((j = 0; j <= i; j++)); do  # Slurm forgets ended jobs after a while
    [ -z "${real[j]:-}" ] && [ "$(squeue -h -j "${ids[j]}" -t R -o %T 2>/dev/null | head -1)" = RUNNING ] || continue
    real[j]=$(($(start_of "${ids[j]}") - since[j]))
  done
done
for ((j = 0; j < submissions; j++)); do
  while [ -z "${real[j]:-}" ]; do
    state=$(squeue -h -j "${ids[j]}" -o %T 2>/dev/null | head -1)
    if [ "$state" = RUNNING ] || [ -z "$state" ]; then
      real[j]=$(($(start_of "${ids[j]}") - since[j]))
    else
      sleep 1
    fi
  done
  error=$((real[j] - stated[j]))
  echo "$j,${stated[j]},${real[j]},$error,${slurm[j]}"
done | tee rows
awk -F, '
  function median(list, n) { asort(list); return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2 }
  function part(error, wait) { return wait > 0 ? error / wait : 0 }
  { e = $4 < 0 ? -$4 : $4; errors[NR] = e; waits[NR] = $3; parts[NR] = part(e, $3) }
  $5 != "" { s = $3 - $5; s = s < 0 ? -s : s; slurm[++n] = s; slurm_parts[n] = part(s, $3) }
  END {
    printf "median error %.0f s, wait %.0f s, error %.0f %% of the wait\n", median(errors, NR), median(waits, NR), 100 * median(parts, NR)
    printf "Slurm, of %d: median error %.0f s, error %.0f %% of the wait\n", n, median(slurm, n), 100 * median(slurm_parts, n)
  }' rows
