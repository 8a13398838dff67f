#!/bin/bash
# A training of several jobs: jobs stop before their time limit, save, and submit the next one, until all steps are done, with the losses of
# an undisturbed run. A job that is told to stop loses no step, also when it is not elastic. A job that was cancelled has no successor. A
# finished job is not run again, unless --fresh asks for it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

make_text >text.txt
cat >job.yaml <<'YAML'
#!/usr/bin/env -S sailor run
#SBATCH --job-name=long --time=1
model: {family: gpt2, layers: 4, hidden: 32, heads: 4, sequence: 32, vocabulary: 256}
training: {global_batch: 8, steps: STEPS, precision: fp64, optimizer: {name: adamw, lr: 1.0e-4, beta2: 0.98}, clip_grad_norm: 1.0}
data: {train: text.txt, format: bytes}
checkpoint: {directory: checkpoints}
YAML
sed 's/STEPS/100/' job.yaml >short.yaml
chmod a+r ./*.yaml text.txt
use_profile fp64
plan() { run sailor plan "$1" --cluster cluster.yaml -o "$2"; }
run sailor cluster --format yaml
echo "$out" >cluster.yaml
chmod a+r cluster.yaml
rm -rf checkpoints

# With a larger learning rate, rounding differences between plans grow a millionfold over these steps.
# Steps for three jobs of a minute: each trains for less than half of it.
plan short.yaml plan.json
expect "planned" equal "$rc" 0
step_s=$(sed -n 's/.*"iteration_s": *\([0-9.e-]*\).*/\1/p' plan.json | head -1)
steps=$(awk "BEGIN { print int(70 / $step_s) }")
sed "s/STEPS/$steps/" job.yaml >long.yaml
chmod a+r long.yaml
echo "$steps steps of $step_s s"

# The undisturbed run: without a site config nothing is emulated.
grep -v '^checkpoint' long.yaml >reference.yaml
chmod a+r reference.yaml
reference() { user env SAILOR_CONFIG=/nowhere.yaml timeout 300 sailor run --local reference.yaml --plan plan.json --directory reference; }
reference >reference.out 2>&1 &
reference_pid=$!

run sbatch --sailor-objective=throughput -o train.log long.yaml
first=$(job_submitted)
job=$first
expect "submitted" test -n "$first"
expect "it trains" wait_until 60 steps_done 3
# The next part is planned on the cluster as it is then.
drained=$(nodes_of_job "$first" | cut -d' ' -f2)
scontrol update nodename="$drained" state=drain reason=test
restore() { scontrol update nodename="$drained" state=resume 2>/dev/null || true; }
parts() { grep -c 'training continues in job' train.log 2>/dev/null || true; }
has_parts() { [ "$(parts)" -ge "$1" ]; }
finished() { [ "$(json "sailor-$first/summary.json" status 2>/dev/null)" = finished ]; }
expect "it stops before its limit, and another job continues" wait_until 90 has_parts 1
expect "the first job ended well" wait_until 30 job_ended "$first"
expect "with exit code 0" contains "$(scontrol show job -o "$first" | head -1)" "JobState=COMPLETED"
second=$(sed -n 's/^training continues in job //p' train.log | head -1)
expect "under the same name" contains "$(scontrol show job -o "$second" | head -1)" "JobName=long "
planned_anew() { local nodes; nodes=$(nodes_of_job "$second") && [ -n "$nodes" ] && ! grep -qw "$drained" <<<"$nodes"; }
expect "the second part was planned without the drained node" wait_until 60 planned_anew  # Slurm forgets ended jobs
expect "all parts end" wait_until 480 finished
scontrol update nodename="$drained" state=resume
expect "in three parts or more" has_parts 2
last=$(sed -n 's/^training continues in job //p' train.log | tail -1)
expect "a later job's number finds the run" equal "$(readlink "sailor-$last")" "sailor-$first"
expect "one report: all steps" equal "$(json "sailor-$first/summary.json" steps)" "$steps"
expect "one line per step" equal "$(wc -l <"sailor-$first/metrics.csv")" $((steps + 1))
wait $reference_pid || { cat reference.out; not_ok "the undisturbed run ends"; }
expect "the losses of the undisturbed run" same_losses reference/metrics.csv "sailor-$first/metrics.csv" 1e-9 "$steps"
expect "the first loss is that of the first part" equal "$(json "sailor-$first/summary.json" first_loss)" "$(json reference/summary.json first_loss)"
expect "no other job waits" no_jobs

# Again: nothing to do.
before=$(cat "sailor-$first/summary.json")
run sbatch --sailor-objective=throughput -o again.log long.yaml
again=$(job_submitted)
expect "a finished job ends at once" wait_until 60 job_ended "$again"
expect "well" contains "$(scontrol show job -o "$again" | head -1)" "JobState=COMPLETED"
expect "it says so" has_text again.log "nothing to do: all $steps steps are trained"
expect "it makes no run" test ! -e "sailor-$again"
run sailor run --local long.yaml --plan plan.json --directory "sailor-$first"
expect "in the same directory: exit 0" equal $rc 0
expect "the summary stays" equal "$(cat "sailor-$first/summary.json")" "$before"

# Afresh, and cancelled: no step is lost, no other job follows.
run sbatch --sailor-objective=throughput --sailor-fresh --time=5 -o fresh.log long.yaml
job=$(job_submitted)
expect "--sailor-fresh trains again" wait_until 60 steps_done 5
newest=$(last_job) # of a heterogeneous job, the last component
expect "from the first step" equal "$(head -2 "sailor-$job/metrics.csv" | tail -1 | cut -d, -f1)" 1
expect "the earlier checkpoints are kept" test -d "checkpoints/earlier-1/step-$steps"
scancel "$job"
expect "it ends" wait_until 60 job_ended "$job"
expect "no process is left" wait_until 10 no_training_processes
expect "cancelled" equal "$(json "sailor-$job/summary.json" status)" cancelled
stopped=$(tail -1 "sailor-$job/metrics.csv" | cut -d, -f1)
expect "all its $stopped steps are saved" has_text fresh.log "the state after step $stopped is saved"
expect "no other job follows" wait_until 30 no_jobs
expect "and none was submitted" equal "$(last_job)" "$newest"

# A signal to a job on this machine.
rm -rf checkpoints
local_run() { user timeout 120 sailor run --local long.yaml --plan plan.json --directory "$1" "${@:2}"; }
for signal in TERM INT; do
  rm -f local.out # of the signal before: the wait must not find its steps
  local_run local >local.out 2>&1 &
  wait_until 60 has_text local.out '^step  *[0-9]*[3-9]/'
  controller=$(pids_of sailor-run | tail -1)
  kill -$signal "$controller"
  wait $! || true
  stopped=$(tail -1 local/metrics.csv | cut -d, -f1)
  expect "$signal: all $stopped steps are saved" has_text local.out "the state after step $stopped is saved"
  expect "$signal: cancelled" equal "$(json local/summary.json status)" cancelled
done
expect "the second run continued the first" has_text local.out "resuming after step"
finish
