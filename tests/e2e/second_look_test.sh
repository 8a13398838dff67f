#!/bin/bash
# An elastic job that loses a node has almost no time to replan: it continues with the rest of its plan. A longer search follows during
# training, and the job changes once, to the better plan that it finds.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" second-look

setup_elastic 100000 fp64
echo "elastic: {time_limit: 0.00001s}" >>"$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
expect "submitted" start_elastic
expect "it trains" wait_until 60 steps_done 5
kill_nodes t2
expect "training goes on without the node" wait_until 20 more_events resumed 0
expect "with what is left of its plan" contains "$(grep '"generation":2' "$events" | grep '"event":"generation"')" '"plan":"3 pipelines: 2 x (2xA100-40 tp2 | 1xV100-16 tp1); 1xT4-16 tp1'
expect "a longer search follows" wait_until 60 more_events second_look 0
look=$(last_event second_look)
expect "it finds a better plan: $(field "$look" iteration_s) s, then $(field "$look" then_s) s" equal "$(field "$look" changes)" true
expect "the job changes to it" wait_until 30 more_events resumed 1
expect "which is the plan that was found" equal "$(field "$(last_event generation)" plan)" "$(field "$look" plan)"
expect "and says how" equal "$(field "$(last_event generation)" how)" "longer search"
expect "nobody was lost" contains "$(last_event running)" '"lost":[]'
expect "or started again" contains "$(last_event running)" '"pids_kept":true'
expect "sailor status says so" contains "$(sailor status "$job" 2>&1)" "a longer search"
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it goes on" wait_until 60 steps_done $((steps + 20))
expect "and stays with it" equal "$(count_events second_look)" 1
scancel "$job"
expect "no process is left" wait_until 60 no_training_processes
revive_nodes t2
finish
