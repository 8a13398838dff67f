#!/bin/bash
# Scripts of other frameworks on processors, as elastic jobs over two GPU types: Hugging Face Accelerate with a transformers model, DeepSpeed
# with ZeRO-1, and PyTorch's fully_shard(). Each loses a node, goes on from its checkpoint with fewer ranks, and its loss falls to the end. (TorchTitan's trainer needs a GPU.)
# Skipped without the frameworks (tests/frameworks/run.sh --install).
python=${SAILOR_FRAMEWORKS_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/frameworks}/bin/python
"$python" -c '' 2>/dev/null || { echo "skipped: no frameworks (tests/frameworks/run.sh --install BIN_DIR)"; exit 77; }
PYTHONPATH=$("$(dirname "${BASH_SOURCE[0]}")/../libtorch_2_11.sh" --python 2>/dev/null) || { echo "$PYTHONPATH"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" frameworks

# The frameworks may be in a directory of root's: the jobs are then root's too.
if [ "$UID" = 0 ] && ! runuser -u "$SAILOR_CLUSTER_USER" -- test -x "$python"; then user() { "$@"; }; fi
export PYTHONPATH GLOO_SOCKET_IFNAME=lo DS_ACCELERATOR=cpu PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1
cp "$e2e"/fixtures/train_{accelerate,deepspeed,hsdp}.py "$e2e/../../trainer/python/sailor_steps.py" .
losses() { sed -n 's/^step [0-9]* loss //p' "$1"; }
falls() { losses "$1" | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR > 20 && last < 0.7 * first) }'; }

# Two types that are nearly as fast: plans use both.
sed -i '/^ *A100-40:/s/slowdown: [0-9]*/slowdown: 40/; /^ *V100-16:/s/slowdown: [0-9]*/slowdown: 50/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"

# trains KIND: with the script of that framework.
trains() {
  local kind=$1 lost
  program=train_$kind.py
  cat >"$kind.yaml" <<YAML
#!/usr/bin/env -S sailor run
#SBATCH --job-name=$kind --time=10 --output=$kind.out
model: {family: gpt2, layers: 6, hidden: 64, heads: 4, sequence: 64, vocabulary: 256}
training: {global_batch: 16, steps: 30}
resources: {max_gpus: {A100-40: 2, V100-16: 2, T4-16: 0}}
trainer: {kind: $kind, command: [$python, $program, "30", "0.3"]}
elastic: {enabled: true, grow_every: 0}
YAML
  chmod a+rx "$kind.yaml"
  run sbatch --sailor-objective=throughput "$kind.yaml"
  job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out")
  output=$work/$kind.out events=$work/sailor-$job/events.jsonl
  expect "$kind: submitted" test -n "$job"
  expect "$kind: it starts" wait_until 60 test -s "sailor-$job/plan.json"
  expect "$kind: two GPU types" equal "$(grep -o '"gpu_type": *"[^"]*"' "sailor-$job/plan.json" | sort -u | wc -l)" 2
  expect "$kind: it trains" wait_until 120 has_text "$output" '^step 7 '
  lost=$(nodes_of_plan "sailor-$job/plan.json" | tr ' ' '\n' | grep -v "^$controller_node$" | tail -1)
  kill_nodes "$lost"
  expect "$kind: it goes on without $lost" wait_until 120 has_text "$output" '^start at [1-9]'
  expect "$kind: from its checkpoint" test "$(sed -n 's/^start at \([1-9][0-9]*\):.*/\1/p' "$output")" -ge 5
  expect "$kind: to the end" wait_until 120 has_text "$output" '^sailor: all ranks have ended'
  expect "$kind: all steps" has_text "$output" '^step 29 '
  expect "$kind: the loss falls" falls "$output"
  expect "$kind: with fewer ranks" test "$(grep -c '"gpu_type"' "sailor-$job/plan.json")" -lt "$(sed -n 's/^start at 0: \([0-9]*\) ranks.*/\1/p' "$output")"
  expect "$kind: its first step after the change is known" equal "$(count_events resumed)" 1
  revive_nodes "$lost"
  wait_idle
}
trains accelerate
trains deepspeed
trains hsdp
finish
