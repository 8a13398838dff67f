#!/bin/bash
# Times of the steps in which a training job grows from 16 to 20 ranks on a throw-away cluster.
set -euo pipefail
usage() {
  cat <<'USAGE'
usage: tests/bench/growth.sh

Trains on four nodes of four emulated GPUs, frees a fifth, and prints in seconds how long the ranks paused when it joined, in the columns
of the Sailor paper (section 5.5; on GPUs: planning 0.1, cleanup 3, broadcast 1.25, groups 4.5, model 2 and data loaders 0.5 s), and the time
from the interruption to the end of the next step. Here cleanup is mostly the rest of the current step, and state includes model and data
loaders.
USAGE
}
case ${1:-} in "") ;; -h | --help) usage; exit 0 ;; *) usage >&2; exit 2 ;; esac
export SAILOR_BUILD_DIR=${SAILOR_BUILD_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/elastic_lib.sh" growth --nodes 15

setup_elastic 100000 fp64
# Iterations that are long against what this machine does besides, so that a node pays.
sed -i '/^ *A100-40:/s/slowdown: [0-9]*/slowdown: 20/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 2}/; s/global_batch: 8/global_batch: 80/' job.yaml

run sbatch -p fast -w a5 -N1 --exclusive --wrap "sleep 3600"
held=$(job_submitted)
run sbatch --sailor-objective=throughput --sailor-max-gpus=V100-16=0,T4-16=0 job.yaml
job=$(job_submitted)
[ -n "$job" ] || { echo "$err" >&2; exit 1; }
output=$work/slurm-$job.out events=$work/sailor-$job/events.jsonl
wait_until 120 steps_done 10 || { echo "training does not begin" >&2; tail -3 "$output" >&2; exit 1; }
scancel "$held"
grown() { grep '"event":"running"' "$events" | grep -q '"ranks":20,'; }
wait_until 120 grown || { echo "the node is not taken" >&2; tail -5 "$events" >&2; exit 1; }
wait_until 30 more_events resumed 0
running=$(grep '"event":"running"' "$events" | grep '"ranks":20,' | head -1)
echo "ranks_before,ranks,planning_s,cleanup_s,broadcast_s,groups_s,state_s,stood_still_s,to_first_step_s"
row="16,20"
for column in plan_s cleanup_s broadcast_s groups_s state_s resume_s; do row+=",$(field "$running" "$column")"; done
resumed=$(grep '"event":"resumed"' "$events" | grep "\"generation\":$(field "$running" generation),")
echo "$row,$(field "$resumed" to_first_step_s)"
scancel "$job"
wait_until 40 no_training_processes || { echo "processes are left" >&2; exit 1; }
