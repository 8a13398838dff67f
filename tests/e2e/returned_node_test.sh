#!/bin/bash
# A node of a training job is powered off until Slurm removes it from the job. When it is back, the job uses it again, through a helper job.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" returned

setup_elastic 100000 fp64
sed -i 's/slowdown: [0-9]*/slowdown: 40/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 2}/' job.yaml
plan_on_two_nodes
expect "submitted" start_elastic --exclude=v1,v2,t1,t2
expect "it trains" wait_until 60 steps_done 10
kill_nodes a2
expect "training goes on without the node" wait_until 20 more_events resumed 0
taken_away() { [ "$(nodes_of_job "$job")" = a1 ]; }
expect "Slurm takes it from the job" wait_until 150 taken_away
expect "nothing else is taken" equal "$(count_events grow_asked)" 0
revive_nodes a2
expect "it is taken up again" wait_until 90 more_events grew 0
expect "and used" wait_until 30 more_events resumed 1
expect "its GPUs are" equal "$(nodes_in_use)" a2
expect "without starting survivors again" contains "$(last_event running)" '"pids_kept":true'
expect "no excluded node was requested" equal "$(grep '"event":"grow_asked"' "$events" | grep -c '"nodes":\["a2"\]')" "$(count_events grow_asked)"
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it goes on" wait_until 60 steps_done $((steps + 20))
scancel "$job"
expect "no process is left" wait_until 60 no_training_processes
finish
