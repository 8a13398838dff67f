#!/bin/bash
# Requests to slurmctld (sdiag, those of the user): of planned submissions, one after the other on an idle cluster, and of elastic jobs that
# train on a full one. Prints
#
#     what,count,minutes,rpcs,each
#
# each: requests per submission, or per job and minute. The types are listed on stderr.
#
# usage: tests/bench/controller_rpcs.sh [--submissions N] [--jobs N] [--minutes N] [--yield]      default 20, 5, 10
#     --yield   the jobs yield, and another job waits
set -euo pipefail
export SAILOR_BUILD_DIR=${SAILOR_BUILD_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
submissions=20 jobs=5 minutes=10 yield=no
while [ $# -gt 0 ]; do
  case $1 in
    --submissions) submissions=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --minutes) minutes=$2; shift ;;
    --yield) yield=yes ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/elastic_lib.sh" rpcs --nodes 15
setup_growth
sed -i 's/grow_every: 2/grow_every: 60/' job.yaml

# report WHAT COUNT MINUTES
report() {
  sdiag | awk -v user="$SAILOR_CLUSTER_USER" '
    /message type/ { types = 1 } /statistics by user/ { types = 0; users = 1 } /^Pending RPC/ { users = 0 }
    types && /count:/ { type = $1; sub(/.*count:/, ""); print type, $1 }
    users && $1 == user { sub(/.*count:/, ""); sum += $1 } END { print sum + 0 }' >counts
  awk '$1 ~ /^REQUEST/ { print "  " $1, $2 }' counts >&2
  local rpcs
  rpcs=$(tail -1 counts)
  echo "$1,$2,$3,$rpcs,$(awk "BEGIN { printf \"%.2f\", $rpcs / $2 / ${3:-1} }")"
}
echo what,count,minutes,rpcs,each

if ((submissions > 0)); then
  sdiag -r >/dev/null
  for ((i = 0; i < submissions; i++)); do
    run sbatch --sailor-objective=throughput --sailor-job=job.yaml -o /dev/null --wrap true
    job=$(job_submitted)
    [ -n "$job" ] || { echo "$err" >&2; exit 1; }
  done
  report submissions "$submissions" ""
  nothing_queued() { [ -z "$(squeue -h)" ]; }
  wait_until 120 nothing_queued
fi

# One node each, all others in use.
nodes=$(sinfo -h -N -p all -o %N | sort -u | tail -n +$((jobs + 1)) | paste -sd,)
run sbatch -p all -w "$nodes" -N "$(tr , '\n' <<<"$nodes" | wc -l)" --exclusive -o /dev/null --wrap "sleep 36000"
holds() { squeue -h -j "$1" -t R -o %A | grep -q .; }
wait_until 60 holds "$(job_submitted)"
started=''
for ((i = 0; i < jobs; i++)); do
  sed "s/directory: checkpoints/directory: checkpoints-$i/" job.yaml >"job-$i.yaml"
  [ "$yield" = no ] || sed -i 's/grow_every: 60/grow_every: 60, yield: true/' "job-$i.yaml"
  chmod a+r "job-$i.yaml"
  run sbatch --sailor-objective=throughput --sailor-wait=none --nodes=1 "job-$i.yaml"
  job=$(job_submitted)
  [ -n "$job" ] || { echo "$err" >&2; exit 1; }
  started+=" $job"
done
[ "$yield" = no ] || run sbatch -p medium -N1 --exclusive -o /dev/null --wrap true
for job in $started; do
  wait_until 120 steps_done 10 || { echo "job $job does not train" >&2; tail -3 "slurm-$job.out" >&2; exit 1; }
done
sdiag -r >/dev/null
sleep $((minutes * 60))
report "elastic jobs" "$jobs" "$minutes"
scancel $started
wait_until 40 no_training_processes || { echo "processes are left" >&2; exit 1; }
