#!/bin/bash
# Trainings on a busy cluster with a real Slurm, by policy of submission: the study of bench_queue with time compressed.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: busy.sh [--seed S] [--minutes M] [--load L] [--out DIR] [--policy fixed|now|auto] [--jobs TRACE.csv[.gz]] [--build DIR]

For each policy (fixed, now, auto; --policy takes one, and can be repeated) starts a throw-away cluster of 15 nodes, on which jobs of others
and small trainings are submitted for M minutes (30), and waits until all trainings have ended. The jobs are drawn by the seed (1) from a
measured trace, an hour of which is a minute here, and offer L (0.95) of the GPU time, an eighth of it as trainings
(tests/bench/busy_workload.cpp). All policies have the same jobs.
  fixed   a hand-written plan on two nodes of one type, which waits in the queue
  now     --sailor-wait=none; tries again every five seconds while there is no plan
  auto    --sailor-wait=auto
Trainings of `now` and `auto` are elastic. GPUs are emulated; ranks need a tenth of a processor or less.

Prints, and writes to DIR/busy.csv, the columns of bench_queue, a line per policy, in seconds as they passed. Trainings, with their GPU hours
and USD, are in DIR/POLICY/trainings.csv, all jobs in DIR/POLICY/jobs.log. Exit code 1 when a training did not end, its losses differ by more
than 1e-9 (relative) from those of an undisturbed run at any step, or anything is left behind: processes, jobs, temporary files, sockets.
Without the trace (default: philly_jobs.csv.gz in measured/ next to $SAILOR_REFERENCE): "skipped: no data".
USAGE
}

seed=1 minutes=30 load=0.95 results='' build='' policies=()
trace=${SAILOR_REFERENCE:+$(dirname "$SAILOR_REFERENCE")/measured/philly_jobs.csv.gz}
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --seed | --minutes | --load | --out | --policy | --jobs | --build) [ $# -ge 2 ] || { usage >&2; exit 2; } ;;
    *) echo "busy.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  case $1 in
    --out) results=$2 ;;
    --policy) case $2 in fixed | now | auto) policies+=("$2") ;; *) echo "busy.sh: no policy $2 (fixed, now, auto)" >&2; exit 2 ;; esac ;;
    --jobs) trace=$2 ;;
    *) declare "${1#--}=$2" ;;
  esac
  shift 2
done
[ ${#policies[@]} -gt 0 ] || policies=(fixed now auto)
[ -n "$results" ] || results=$(mktemp -d "${TMPDIR:-/tmp}/sailor-busy.XXXXXX")
mkdir -p "$results" && results=$(cd "$results" && pwd)
header=policy,jobs,mean_turnaround_s,p95_turnaround_s,mean_wait_s,gpu_hours,usd,others_mean_wait_s,others_p95_wait_s,lost_steps
[ -r "$trace" ] || { echo $header; echo "skipped: no data (${trace:-SAILOR_REFERENCE is not set})"; exit 0; }
trace=$(realpath "$trace")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Each policy has a cluster and a process of its own.
if [ "${SAILOR_BUSY_POLICY:-}" = '' ]; then
  status=0
  echo $header | tee "$results/busy.csv"
  for policy in "${policies[@]}"; do
    SAILOR_BUSY_POLICY=$policy "$0" --seed "$seed" --minutes "$minutes" --load "$load" --out "$results" --jobs "$trace" \
      ${build:+--build "$build"} || status=1
    tail -n +2 "$results/$policy/row.csv" >>"$results/busy.csv" 2>/dev/null || status=1
  done
  exit $status
fi

policy=$SAILOR_BUSY_POLICY
results=$results/$policy
mkdir -p "$results"
. "$here/e2e/elastic_lib.sh" "busy-$policy" --nodes 15 ${build:+--build "$build"}
trap 'cp "$SAILOR_CLUSTER_DIR"/log/{jobs,slurmctld}.log "$results" || true; cp -r "$work" "$results/work" || true; leave; "$here/cluster.sh" down' EXIT
bad=0
complain() { echo "$policy: $*" >&2; bad=1; }
kRetry_s=5

# What the trainings have in common. In 64 bit, and with a rate at which sums in another order, which other plans make, change losses by
# 1e-12 in a thousand steps, and a step that is left out or done twice by 1e-5.
make_text >text.txt
use_profile fp64
sed -i '/^ *A100-40:/s/slowdown: [0-9]*/slowdown: 100/; /^ *V100-16:/s/slowdown: [0-9]*/slowdown: 150/; /^ *T4-16:/s/slowdown: [0-9]*/slowdown: 200/' \
  "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
echo 'request: {whole_nodes: true}' >>"$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
# job_spec STEPS
job_spec() {
  cat <<YAML
#!/usr/bin/env -S sailor run
model: {family: gpt2, layers: 4, hidden: 32, heads: 4, sequence: 32, vocabulary: 256}
training: {global_batch: 8, steps: $1, precision: fp64, optimizer: {name: adamw, lr: 5.0e-5, epsilon: 1.0e-3, beta2: 0.98}, clip_grad_norm: 1.0}
data: {train: $work/text.txt, format: bytes}
YAML
}
# hand_written GPU_TYPE PIPELINES: one GPU each.
hand_written() {
  local i
  echo '{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 1, "zero1": false, "interleave": 1, "pipelines": ['
  for ((i = 0; i < $2; i++)); do
    echo "{\"microbatches\": $((8 / $2)), \"stages\": [{\"layers\": [0, 6], \"gpu_type\": \"$1\", \"zone\": \"dev-a\", \"tp\": 1, \"recompute\": \"none\"}]}"
    [ $i = $(($2 - 1)) ] || echo ,
  done
  echo ']}'
}
hand_written A100-40 8 >fast.json
hand_written V100-16 8 >medium.json
hand_written T4-16 4 >small.json
hand_written A100-40 1 >one.json
job_spec 100 >job.yaml
chmod a+r ./*
run sailor cluster --format yaml
echo "$out" >cluster.yaml
iterations=
for partition in fast medium small; do
  out=$(sailor simulate job.yaml $partition.json --cluster cluster.yaml --format json)
  iterations+=${iterations:+,}$(sed -n 's/.*"iteration_s": *\([0-9.e-]*\).*/\1/p' <<<"$out" | head -1)
done
busy_workload --jobs "$trace" --nodes "$SAILOR_CLUSTER_DIR/etc/nodes.txt" --load "$load" --seed "$seed" --minutes "$minutes" \
  --iterations "$iterations" >workload.csv
cp workload.csv "$results"

# The undisturbed run, for as many steps as any training has: one process, nothing emulated.
job_spec "$(awk -F, 'NR > 1 && $7 > most { most = $7 } END { print most }' workload.csv)" >undisturbed.yaml
chmod a+r undisturbed.yaml
user env SAILOR_CONFIG=none sailor run undisturbed.yaml --local --plan one.json --directory "$work/undisturbed" >undisturbed.log 2>&1 ||
  { tail -3 undisturbed.log >&2; exit 1; }

# train INDEX STEPS LIMIT_MIN PARTITION: submits a training as the policy does, and waits for it. Its row in trainings.csv:
# index,job,submit time,steps.
train() {
  local directory=$work/t$1 submit job='' options=()
  mkdir -p "$directory/tmp"
  chmod 1777 "$directory" "$directory/tmp"
  cd "$directory"
  { job_spec "$2"; echo "checkpoint: {directory: $directory/checkpoints, every_steps: 50, keep: 2}"; } >job.yaml
  case $policy in
    fixed) options=(--sailor-plan="$work/$4.json" --sailor-wait=nodes) ;;
    now) options=(--sailor-wait=none) ;;
    auto) options=(--sailor-wait=auto) ;;
  esac
  [ "$policy" = fixed ] || echo "elastic: {enabled: true, grow_every: 5}" >>job.yaml
  chmod a+r job.yaml
  submit=$(date +%s)
  until [ -n "$job" ]; do
    rc=0
    user env TMPDIR="$directory/tmp" timeout 120 sbatch --sailor-objective=throughput "${options[@]}" -J "training$1" -t "$3" -o train.log job.yaml \
      >sbatch.out 2>>sbatch.err </dev/null || rc=$?
    job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' sbatch.out)
    if [ -n "$job" ]; then continue; fi
    if [ $rc != 3 ]; then echo "training $1 is refused: $(tail -1 sbatch.err)" >>"$work/failures"; return; fi
    sleep $kRetry_s
  done
  echo "$1,$job,$submit,$2" >>"$work/submitted.csv"
  finished() { [ "$(json "sailor-$job/summary.json" status 2>/dev/null)" = finished ]; }
  for ((i = 1; ; i++)); do
    sleep 2
    ! finished || return 0
    if ((i % 15)) || [ -n "$(squeue -h -n "training$1" -o %A || echo unknown)" ]; then continue; fi
    sleep 5  # between the end of the job and that of this look
    finished || echo "training $1 (job $job) ended before its last step: $(tail -1 train.log)" >>"$work/failures"
    return 0
  done
}

"$here/cluster.sh" fill workload.csv >fill.log 2>&1 &
fill=$!
trainings=()
: >submitted.csv
begun=$(now)
i=0
while IFS=, read -r what submit_s _ limit_min _ partition steps; do
  [ "$what" = training ] || continue
  sleep "$(awk "BEGIN { s = $submit_s - $(seconds_since "$begun"); print (s > 0 ? s : 0) }")"
  i=$((i + 1))
  train $i "$steps" "$limit_min" "$partition" </dev/null &
  trainings+=($!)
done <workload.csv
wait $fill || complain "jobs of others: $(tail -1 fill.log)"

# All trainings end, also after the minutes, when nobody submits any more.
ended() { local pid; for pid in "${trainings[@]}"; do ! kill -0 "$pid" 2>/dev/null || return 1; done; }
wait_until $((60 * (minutes + 10))) ended || complain "trainings that do not end: $(squeue -h -o '%A %j %T %r' | grep -v -e other -e running | paste -sd,)"
for pid in "${trainings[@]}"; do kill "$pid" 2>/dev/null || true; done
[ ! -e failures ] || complain "$(paste -sd'; ' failures)"
nobody_waits() { [ -z "$(squeue -h -t PD -n other,running -o %A)" ]; }
wait_until $((60 * minutes)) nobody_waits || complain "jobs of others that do not start"
# What trainings have left.
no_trainings() { local names; names=$(squeue -h -o %j) && ! grep -qvx -e other -e running <<<"${names:-other}"; }
wait_until 60 no_trainings || complain "jobs are left: $(squeue -h -o '%A %j %T' | grep -v -e other -e running | paste -sd,)"
wait_until 40 no_training_processes || complain "processes are left: $(training_processes | paste -sd,)"
squeue -h -n other,running -o %A | xargs -r scancel
wait_until 60 no_jobs || complain "jobs do not end"
# The partitions that sailor-cluster has read are kept for other programs of the user (admin guide).
kept="sailor-$(id -u "$SAILOR_CLUSTER_USER")"
left=$(find t*/tmp -mindepth 1 ! -name "$kept" ! -path "*/$kept/setup-*.json"; find . \( -name '*.tmp*' -o -type s \) -print; find "$SAILOR_CLUSTER_DIR"/tmp -mindepth 2)
[ -z "$left" ] || complain "files are left: $(head -5 <<<"$left" | paste -sd,)"

# Losses.
while IFS=, read -r index job _ steps; do
  metrics=t$index/sailor-$job/metrics.csv
  compared=$(same_losses undisturbed/metrics.csv "$metrics" 1e-9 "$steps") || complain "training $index, $steps steps:$compared"
  echo "training $index:$compared" >>losses.txt
  echo "$index,$(awk '/^step / { n++; if (!seen[$2]++) steps++ } END { print n - steps }' "t$index/train.log")" >>lost.csv
done <submitted.csv
cp losses.txt "$results"

# jobs.log: "JobId=1 ... Name=training1 ... StartTime=2026-01-01T10:00:00 EndTime=... NodeList=a[1-2] ... SubmitTime=..."
sed -n 's/.*JobId=\([0-9]*\) .* Name=\([^ ]*\) .* StartTime=\([^ ]*\) EndTime=\([^ ]*\) NodeList=\([^ ]*\) .* SubmitTime=\([^ ]*\) .*/\1 \2 \3 \4 \5 \6/p' \
  "$SAILOR_CLUSTER_DIR/log/jobs.log" | while read -r id name start end nodes submit; do
  [[ $start != Unknown && $nodes != '(null)' ]] || continue
  counts=$(scontrol show hostnames "$nodes" | sed 's/[0-9].*//' | sort | uniq -c | awk '{ n[$2] = $1 } END { printf "%d,%d,%d", n["a"], n["v"], n["t"] }')
  echo "$id,$name,$(date -d "$submit" +%s),$(date -d "$start" +%s),$(date -d "$end" +%s),$counts"
done >jobs.csv
cp jobs.csv "$results"
prices=$(for type in A100-40 V100-16 T4-16; do sed -n "s/^ *$type:.*usd_per_hour: *\([0-9.]*\).*/\1/p" "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"; done | paste -sd' ')
{
  echo $header
  awk -F, -v policy="$policy" -v prices="$prices" -v table="$results/trainings.csv" '
    function mean(list, n,  i, sum) { for (i = 1; i <= n; i++) sum += list[i]; return n ? sum / n : 0 }
    function p95(list, n) { asort(list); return n ? list[int(0.95 * n) + (0.95 * n > int(0.95 * n))] : 0 }
    BEGIN { split(prices, usd, " "); gpus[1] = gpus[2] = 4; gpus[3] = 2; print "index,turnaround_s,wait_s,gpu_hours,usd,lost_steps" >table }
    FILENAME == "submitted.csv" { training[$2] = $1; submit[$1] = $3; order[++n] = $1; next }
    FILENAME == "lost.csv" { lost[$1] = $2; lost_steps += $2; next }
    $2 == "other" { others[++o] = $4 - $3; next }
    $2 ~ /^(training[0-9]+|sailor-[0-9]+-helper)$/ {
      name = $2
      if (sub(/^training/, "", name)) { index_of[$1] = name } else { gsub(/[^0-9]/, "", name); name = "job " name }
      if (!(name in first) || $4 < first[name]) first[name] = $4
      if ($5 > last[name]) last[name] = $5
      for (k = 1; k <= 3; k++) { h = $(5 + k) * gpus[k] * ($5 - $4) / 3600; hours[name] += h; cost[name] += h * usd[k] }
    }
    END {
      for (name in hours) if (name ~ /^job /) { i = index_of[substr(name, 5)]; hours[i] += hours[name]; cost[i] += cost[name] }
      for (k = 1; k <= n; k++) {
        i = order[k]; turnaround[k] = last[i] - submit[i]; wait[k] = first[i] - submit[i]; total += hours[i]; paid += cost[i]
        printf "%d,%d,%d,%.3f,%.3f,%d\n", i, turnaround[k], wait[k], hours[i], cost[i], lost[i] >table
      }
      printf "%s,%d,%.1f,%.1f,%.1f,%.2f,%.2f,%.1f,%.1f,%d\n", policy, n, mean(turnaround, n), p95(turnaround, n), mean(wait, n), total, paid, \
        mean(others, o), p95(others, o), lost_steps
    }' submitted.csv lost.csv jobs.csv
} >"$results/row.csv"
tail -1 "$results/row.csv"
exit $bad
