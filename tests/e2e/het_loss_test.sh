#!/bin/bash
# Nodes are lost in a heterogeneous job: one of a component with others, and the only one of a component, without which Slurm starts the
# whole job again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" het-loss

sed -i '/umbrella_partition/d' "$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
setup_elastic 100000 fp64
sed -i 's/slowdown: [0-9]*/slowdown: 40/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 0}/' job.yaml
sed -i 's/steps: 100000/steps: 150/' reference.yaml
cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 1,
 "pipelines": [
  {"microbatches": 4, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 2, "node": "a1", "gpus": [0, 1]},
    {"layers": [3, 6], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "node": "v1", "gpus": [0]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [0]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [1]}]}],
 "zero1": false, "interleave": 1}
JSON
train_reference

# --partition keeps the job out of the umbrella partition.
expect "submitted" start_elastic -p fast,medium
expect "a heterogeneous job" equal "$(partitions_of_job "$job")" "fast medium"
expect "it trains" wait_until 60 steps_done 10
expect "on three nodes" equal "$(nodes_of_job "$job")" "a1 a2 v1"

# A node of a component with two: the others go on.
steps=$(wc -l <"sailor-$job/metrics.jsonl")
kill_nodes a2
expect "it goes on without a node of a component" wait_until 60 more_events resumed 0
scontrol update nodename=a2 state=down reason=test
expect "with the others" equal "$(nodes_in_use)" v1
expect "it trains" wait_until 60 steps_done $((steps + 30))
expect "no step is done twice" equal "$(cut -d, -f1 "sailor-$job/metrics.csv" | sort | uniq -d)" ""

# The only node of a component: Slurm stops the whole job and starts it again later. It goes on elsewhere, from the state that it saved.
restarts() { scontrol show job -o "$job" | sed -n '1s/.* Restarts=\([0-9]*\).*/\1/p'; }
started_again() { [ "$(restarts)" = 1 ] && [ "$(scontrol show job -o "$job" | grep -c JobState=RUNNING)" = 2 ]; }
waits_again() { [ "$(squeue -h -j "$job" -o %T | sort -u)" = PENDING ]; }
kill_nodes v1
scontrol update nodename=v1 state=down reason=test
scontrol update nodename=v1 state=drain reason=test # it might answer once more
expect "without the only node of a component the job waits again" wait_until 60 waits_again
expect "its state is saved" wait_until 30 grep -q "the state after step [0-9]* is saved" "$output"
steps=$(wc -l <"sailor-$job/metrics.jsonl")
revive_nodes a2
back() { [ "$(sinfo -h -n "$1" -p "$2" -o %T)" = idle ] || { scontrol update nodename="$1" state=resume 2>/dev/null; false; }; }
expect "the first component has its nodes again" wait_until 30 back a2 fast
# Slurm would wait two minutes. Of each component, unless the job starts meanwhile.
squeue -h -j "$job" -o %A | while read -r component; do scontrol update jobid="$component" starttime=now+3 || true; done
expect "it starts again, on other nodes" wait_until 100 started_again
expect "in the component's partition" equal "$(nodes_of_job "$job")" "a1 a2 v2"
expect "it trains" wait_until 60 steps_done $((steps + 20))
expect "from the state that it saved" contains "$(last_event running)" '"state_from":"checkpoint"'
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 60
scancel "$job"
revive_nodes v1
expect "all nodes are back" wait_until 30 back v1 medium
expect "no process is left" wait_until 60 no_training_processes
finish
