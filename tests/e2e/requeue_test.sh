#!/bin/bash
# The controller's node is lost, with its slurmd, while the job has a helper job: the remaining processes end when their lease expires, the
# helper job is released, the job is requeued, and continues from its newest state when the node is back.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" requeue

setup_elastic 100000 fp64
sed -i 's/slowdown: [0-9]*/slowdown: 40/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 2}/' job.yaml
sed -i 's/steps: 100000/steps: 150/' reference.yaml
plan_on_two_nodes
run sbatch -p all -w v2,t1,t2 -N 3 --exclusive --wrap "sleep 3600"
others=$(job_submitted)
train_reference

# With limits that allow growth by one node.
expect "submitted" start_elastic --sailor-max-gpus=A100-40=4,V100-16=4
helpers() { squeue -h -t R -o '%j %N' | awk -v name="sailor-$job-helper" '$1 == name { print $2 }' | sort | paste -sd' '; }
no_helpers() { [ -z "$(helpers)" ]; }
expect "it takes a node more" wait_until 60 more_events grew 0
expect "the plan uses it" wait_until 30 more_events resumed 0
expect "by a helper job" equal "$(helpers)" v1
expect "8 ranks" equal "$(field "$(last_event running)" ranks)" 8
expect "it saves its state" wait_until 60 steps_done 70

# Power off: the controller, its ranks and helpers, and its node's slurmd.
steps=$(wc -l <"sailor-$job/metrics.jsonl")
batch=$(awk '{ print $4 }' "/proc/$(pids_of sailor-run)/stat")
kill -9 "$(pids_of sailor-run)" "$batch"
kill_nodes "$controller_node"
nobody_left() { [ -z "$(pids_of sailor-rank)" ]; }
expect "the remaining ranks end when their lease expires" wait_until 20 nobody_left
expect "the helper job is released" wait_until 180 no_helpers
expect "Slurm starts the job again" wait_until 180 started_again
revive_nodes "$controller_node"
expect "it trains" wait_until 300 steps_done $((steps + 30))
expect "from its newest state" contains "$(grep '"event":"running"' "$events" | sed -n 3p)" '"state_from":"checkpoint"'
expect "it goes on" wait_until 60 steps_done 180
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 100
scancel "$job" "$others"
expect "no process is left" wait_until 60 no_training_processes
expect "no helper job is left" wait_until 60 no_helpers
finish
