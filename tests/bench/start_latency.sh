#!/bin/bash
# Starts of planned jobs on the throw-away cluster: short jobs one after the other, with 4 ranks on every node, over two partitions. Prints
#
#     launcher,ranks,starts,succeeded,median_s,max_s
#
# launcher: Open MPI's release, or none. A start succeeds when the job trains and ends with exit code 0; seconds from the controller's
# start until all ranks have joined. Exits with 1 when a start fails; a job that has not ended after two minutes is cancelled and counts as one.
#
# usage: tests/bench/start_latency.sh [--starts N] [--ranks N,...] [--keep DIR]      default 100 starts of 8 ranks, then 5 each of 16 and 32
#     --keep DIR   copies the run directories of failed starts
# SAILOR_MPIRUN chooses the launcher, as in jobs.
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
starts='' sizes="8 16 32" keep=''
while [ $# -gt 0 ]; do
  case $1 in
    --starts) starts=$2; shift ;;
    --ranks) sizes=${2//,/ }; shift ;;
    --keep) keep=$2; shift ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
export SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-starts.XXXXXX")
trap '"$root/tests/cluster.sh" down >/dev/null 2>&1' EXIT
eval "$("$root/tests/cluster.sh" up --nodes 12 2>/dev/null)"
user() { if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- "$@"; else "$@"; fi; }
cd "$SAILOR_CLUSTER_DIR/work"
chmod 1777 .
launcher=none
if [ "${SAILOR_MPIRUN:-}" != none ]; then
  launcher=$("${SAILOR_MPIRUN:-mpirun}" --version | sed -n 's/.*(Open[^)]*) \([0-9.]*\).*/Open MPI \1/p' | head -1)
fi
printf 'a line of text that is long enough\n%.0s' {1..500} >text.txt
cat >job.yaml <<'YAML'
#!/usr/bin/env -S sailor run
#SBATCH --job-name=start --time=5 --output=start-%j.out
model: {family: gpt2, layers: 1, hidden: 64, heads: 4, sequence: 64, vocabulary: 256}
training: {global_batch: 16, precision: fp32, steps: 1, optimizer: {name: adamw, lr: 1.0e-3}}
data: {train: text.txt, format: bytes}
YAML

cp "$root/tests/e2e/fixtures/tiny_profile.json" "$SAILOR_CLUSTER_DIR/profiles/"
chmod a+r "$SAILOR_CLUSTER_DIR/profiles/tiny_profile.json"

# plan RANKS: pipelines of one stage with TP 4, on the first nodes of two partitions in turn.
plan() {
  local nodes=(a1 v1 a2 v2 a3 v3 a4 v4) count=$(($1 / 4)) i type comma=''
  printf '{"sailor_plan": 1, "model": "gpt2-1x64", "global_batch": 16, "microbatch": 1, "pipelines": ['
  for ((i = 0; i < count; i++)); do
    type=A100-40
    [[ ${nodes[i]} == a* ]] || type=V100-16
    printf '%s{"microbatches": %d, "stages": [{"layers": [0, 3], "gpu_type": "%s", "zone": "dev-a", "tp": 4, "recompute": "none", "node": "%s", "gpus": [0, 1, 2, 3]}]}' \
      "$comma" $((16 / count)) "$type" "${nodes[i]}"
    comma=', '
  done
  printf '], "zero1": false, "interleave": 1}\n'
}

# start: one job; its time in seconds, or nothing.
start() {
  local job out
  job=$(user sbatch --parsable --sailor-plan=plan.json --sailor-objective=throughput job.yaml 2>error) || { cat error >&2; return 0; }
  job=${job%%[;+]*}
  for _ in $(seq 600); do
    case $(scontrol show job -o "$job" | grep -o 'JobState=[A-Z]*' | sort -u | xargs) in
      *RUNNING* | *PENDING* | *CONFIGURING* | *COMPLETING*) sleep 0.2 ;;
      *) break ;;
    esac
  done
  out=start-$job.out
  if [ "$(scontrol show job -o "$job" | grep -o 'JobState=[A-Z]*' | sort -u)" = JobState=COMPLETED ]; then
    sed -n 's/.* ranks joined after \([0-9.]*\) s.*/\1/p' "$out" | head -1
  else
    echo "start of job $job: $(scontrol show job -o "$job" | grep -o 'JobState=[A-Z]*' | head -1), $(tail -n 1 "$out" 2>/dev/null)" >&2
    [ -z "$keep" ] || { mkdir -p "$keep" && cp -r "$out" "sailor-$job" "$keep" 2>/dev/null || true; }
    scancel "$job" 2>/dev/null || true
  fi
  for _ in $(seq 100); do [ -z "$(squeue -h)" ] && break; sleep 0.2; done
  rm -rf "sailor-$job"
}

failed=0
echo "launcher,ranks,starts,succeeded,median_s,max_s"
for ranks in $sizes; do
  plan "$ranks" >plan.json
  chmod a+r plan.json job.yaml text.txt
  count=${starts:-5}
  [ -n "$starts" ] || [ "$ranks" != 8 ] || count=100
  for _ in $(seq "$count"); do start; done | sort -n >times
  succeeded=$(wc -l <times)
  echo "$launcher,$ranks,$count,$succeeded,$(awk '{ t[NR] = $1 } END { print t[int((NR + 1) / 2)] "," t[NR] }' times)"
  [ "$succeeded" = "$count" ] || failed=1
done
exit $failed
