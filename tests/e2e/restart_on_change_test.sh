#!/bin/bash
# An elastic job whose memory holds the training, but not the states of two plans: the plan says so, the ranks free their state before the
# change, and training goes on from the last snapshot instead of running out of memory.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" restart-on-change

setup_elastic 100000 bf16
sed -i 's/hidden: 32/hidden: 256/; s/every_steps: 20/every_steps: 5/' job.yaml
# One replica is left when the other is lost: its state is as large as before.
cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x256", "global_batch": 8, "microbatch": 1,
 "pipelines": [
  {"microbatches": 4, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a1", "gpus": [0]}]},
  {"microbatches": 4, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [0]}]}],
 "zero1": false, "interleave": 1}
JSON
measure_profile job.yaml --seconds 6 --tp 1,2 --microbatches 1,2
needed=$(sailor simulate job.yaml plan.json --format json 2>/dev/null | grep -o '"total_bytes": [0-9]*' | grep -o '[0-9]*$' | sort -n | tail -1)
sed -i "s/memory: [0-9]*GiB/memory: $((needed + (4 << 20)))/" "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"

expect "submitted" start_elastic
expect "it trains beyond a checkpoint" wait_until 90 steps_done 8
kill -9 "$(working_rank_on a2)"
expect "training goes on" wait_until 40 more_events resumed 0
dropping=$(field "$(grep '"event":"generation"' "$events" | sed -n 2p)" dropping)
expect "ranks without memory for two states ($dropping) free their own" test "${dropping:-0}" -ge 1
expect "the log says so" has_text "$output" "^elastic: restart on change: .* no memory for the states of two plans"
from=$(field "$(last_event running)" state_from)
expect "the state is that of the last snapshot ($from)" test "$from" = memory -o "$from" = checkpoint
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it goes on" wait_until 60 steps_done $((steps + 10))
scancel "$job"
expect "no process is left" wait_until 30 no_training_processes
finish
