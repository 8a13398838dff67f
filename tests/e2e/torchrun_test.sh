#!/bin/bash
# A training program that is not Sailor's: a plain script of PyTorch's DistributedDataParallel on processors, submitted with a plan of its
# framework's. Over two partitions; by `sailor launch` and by srun; a rank that fails; a requeued job that goes on from its own checkpoint.
# Skipped without PyTorch's wheels (tests/libtorch_2_11.sh).
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PYTHONPATH=$("$e2e/../libtorch_2_11.sh" --python 2>/dev/null) || { echo "$PYTHONPATH"; exit 77; }
site=${PYTHONPATH%%:*}
# The wheels may be in a directory of root's: the job is then root's too.
as_owner() { if [ "$UID" = 0 ] && ! runuser -u "$SAILOR_CLUSTER_USER" -- test -r "$site/torch"; then "$@"; else user "$@"; fi; }
submit() {
  rc=0
  as_owner timeout 300 "$@" >"$work/.out" 2>"$work/.err" </dev/null || rc=$?
  out=$(cat "$work/.out") err=$(cat "$work/.err")
  job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out")
}
cp "$e2e/fixtures/train_ddp.py" .
export PYTHONPATH GLOO_SOCKET_IFNAME=lo
job_yaml() {  # PAUSE STEPS
  cat >ddp.yaml <<YAML
#!/usr/bin/env -S sailor run
#SBATCH --job-name=ddp --time=10 --output=ddp.%j
model: {family: gpt2, layers: 6, hidden: 64, heads: 4, sequence: 64, vocabulary: 256}
training: {global_batch: 16, steps: $2}
trainer: {kind: torchrun, command: [python3, train_ddp.py, "$1", "$2"]}
YAML
  chmod a+rx ddp.yaml
}
losses() { sed -n 's/^step [0-9]* loss //p' "$1"; }
falls() { losses "$1" | awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(NR > 3 && last < 0.8 * first) }'; }

job_yaml 0 20
submit sbatch --sailor-objective=throughput ddp.yaml
expect "submitted" test -n "$job"
expect "the table has data-parallel plans alone" test -z "$(grep -oE 'tp[2-9]|P=[2-9]' <<<"$err")"
wait_idle
plan=sailor-$job/plan.json
expect "all ranks have ended" grep -q '^sailor: all ranks have ended$' "ddp.$job"
expect "a rank per GPU of the plan" grep -q "^start at 0: $(grep -c '"gpu_type"' "$plan") ranks, $(nodes_of_plan "$plan" | wc -w) nodes" "ddp.$job"
expect "over several nodes" test "$(nodes_of_plan "$plan" | wc -w)" -gt 1
expect "the loss falls" falls "ddp.$job"

# Two GPU types of two partitions, a heterogeneous job. By hand, from a script of one's own; then one task of srun per rank.
stage() { echo "{\"microbatches\": 2, \"stages\": [{\"layers\": [0, 8], \"gpu_type\": \"$1\", \"zone\": \"dev-a\", \"tp\": 1, \"recompute\": \"none\", \"node\": \"$2\", \"gpus\": [$3]}]}"; }
cat >mixed.json <<JSON
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2, "zero1": false, "interleave": 1,
 "pipelines": [$(stage A100-40 a1 0), $(stage A100-40 a1 2), $(stage V100-16 v1 1), $(stage V100-16 v2 0)]}
JSON
cat >own.sh <<'SH'
#!/bin/bash
exec sailor launch -- python3 train_ddp.py 0 8
SH
chmod a+r mixed.json && chmod a+rx own.sh
rm -f ddp.pt
submit sbatch --output=own.%j --sailor-plan=mixed.json --sailor-job=ddp.yaml own.sh
expect "over two partitions" contains "$(squeue -h -o %P | sort -u | tr '\n' ' ')$(partitions_of_job "$job")" "$(sinfo -h -n v1 -o %P | tr -d '*' | head -1)"
wait_idle
expect "sailor launch: all ranks" grep -q "^start at 0: 4 ranks, 3 nodes, 2 microbatches" "own.$job"
expect "sailor launch: the loss falls" falls "own.$job"
losses "own.$job" >own.losses
rm -f ddp.pt
submit srun --sailor-plan=mixed.json --sailor-job=ddp.yaml sailor launch --task -- python3 train_ddp.py 0 8
echo "$out" >srun.out
expect "srun: all ranks" grep -q "^start at 0: 4 ranks, 3 nodes, 2 microbatches" srun.out
expect "srun: the same losses" equal "$(losses srun.out)" "$(cat own.losses)"

# The first rank that fails ends all others, and the job.
cat >fails.sh <<'SH'
#!/bin/bash
exec sailor launch -- bash -c 'if [ "$RANK" = 1 ]; then exit 7; fi; sleep 600'
SH
chmod a+rx fails.sh
submit sbatch --output=fails.%j --sailor-plan="$plan" --sailor-job=ddp.yaml fails.sh
wait_idle
expect "a rank that fails ends the job with its code" equal "$(scontrol show job "$job" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p' | head -1)" 7

# Requeued in the middle: the script goes on from its own checkpoint.
rm -f ddp.pt
job_yaml 0.3 25
submit sbatch --requeue --open-mode=append --sailor-objective=throughput ddp.yaml
expect "it trains" wait_until 60 has_text "ddp.$job" '^step 3 '
scontrol requeue "$job"
goes_on() { restart_now; has_text "ddp.$job" '^start at [1-9]'; }
expect "it goes on from its checkpoint" wait_until 100 goes_on
wait_idle
expect "to the end" has_text "ddp.$job" '^step 24 '
expect "no step twice" equal "$(grep -c '^step 2 ' "ddp.$job")" 1
finish
