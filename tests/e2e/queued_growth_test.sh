#!/bin/bash
# On a full cluster a training job waits for more nodes in the queue, in the QOS that the site says. Such a node is taken by preemption, with
# 30 s of grace, and given back later: no step is lost, and the losses are those of the undisturbed run. What waits when the controller is
# killed ends by itself. A job that is preempted as a whole saves its state, and another job goes on with it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" queued --accounts

setup_growth
sacctmgr -i modify qos low set gracetime=30 preemptmode=cancel >/dev/null
# A user's own config does not replace that of a site with a policy.
own_config=$SAILOR_CLUSTER_DIR/etc/own.yaml
cp "$SAILOR_CONFIG" "$own_config"
printf '%s\n' "elastic: {grow_qos: low}" "policy: {planning: true}" >>"$SAILOR_CONFIG"
sed -i 's/steps: 100000/steps: 150/' reference.yaml

job_runs() { scontrol show job -o "$1" | grep -q JobState=RUNNING; }
# hold NODES: another job on these nodes; sets held to its id.
hold() {
  run sbatch -p all -w "$1" -N "$(tr , '\n' <<<"$1" | wc -l)" --exclusive -o /dev/null --wrap "sleep 3600"
  held=$(job_submitted)
  wait_until 60 job_runs "$held"
}
# helpers STATE FORMAT
helpers() { squeue -h -t "$1" -n "sailor-$job-helper" -o "$2" | sort | paste -sd' '; }
helpers_are() { equal "$(helpers "$1" "$2")" "$3" >/dev/null; }
no_helpers() { [ -z "$(helpers PD,R,CG %A)" ]; }
submit() {
  run sbatch --sailor-objective=throughput "$@"
  job=$(job_submitted)
  output=$work/slurm-$job.out events=$work/sailor-$job/events.jsonl
  [ -n "$job" ]
}
submit_with_own_config() { SAILOR_CONFIG=$own_config submit "$@"; }
# Each step is done once, in order.
all_steps_once() { awk -F, 'NR > 1 && $1 != NR - 1 { print "line " NR ": step " $1; exit 1 }' "sailor-$job/metrics.csv"; }

hold a2,v2,t1,t2
others=$held
hold v1
next=$held

expect "submitted" submit reference.yaml
reference=$job
expect "the undisturbed run ends" wait_until 300 job_ended "$reference"

expect "submitted" submit_with_own_config job.yaml
expect "it trains" wait_until 60 steps_done 12
expect "it runs on the only free node" equal "$(nodes_of_job "$job")" a1
expect "a node is waited for" wait_until 60 more_events grow_queued 1
expect "one of each kind that pays, and not of the useless one" wait_until 20 helpers_are PD "%q %f" "low (null) low (null)"
expect "the log says so" has_text "$output" "elastic: waits in the queue for a node with 4 A100-40"
for helper in $(helpers PD %A); do
  line=$(scontrol show job -o "$helper") left=$(($(date +%s) - 60))
  ends=$(scontrol show job -o "$job" | grep -o ' EndTime=[^ ]*' | cut -d= -f2)
  expect "it can be backfilled" contains "$line" " TimeMin=00:05:00"
  expect "it ends with the job" equal "$(grep -o 'Deadline=[^ ]*' <<<"$line" | cut -d= -f2)" "$ends"
  expect "at the user's ordinary priority" contains "$line" " Nice=0 "
done

scancel "$next"
if ! wait_until 60 more_events grew 0; then not_ok "a node that comes free is taken"; tail -5 "$events"; cat "sailor-$job/logs/helpers.log"; fi
helper=$(helpers R %A)
expect "by the helper job" equal "$(helpers R %N)" v1
expect "the plan uses it" wait_until 40 more_events resumed 0
expect "8 ranks" equal "$(field "$(last_event running)" ranks)" 8
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it goes on" wait_until 60 steps_done $((steps + 10))

# Others take it back.
resumed=$(count_events resumed)
hold v1
next=$held
expect "the helper job is preempted" contains "$(scontrol show job -o "$helper")" "PreemptTime=20"
expect "its node is told to leave" more_events leaving 0
grace_s=$(field "$(last_event leaving)" grace_s)
expect "with the grace time of its QOS ($grace_s s)" awk "BEGIN { exit !($grace_s > 26 && $grace_s <= 30) }"
expect "training goes on without it" wait_until 40 more_events resumed "$resumed"
expect "on 4 ranks" equal "$(field "$(last_event running)" ranks)" 4
expect "no step is lost" equal "$(steps_lost)" 0
expect "its end is no loss" equal "$(count_events lost)" 0
expect "it waits for a node again" wait_until 60 helpers_are PD "%q %f" "low (null) low (null)"
scancel "$next"
grown=$(count_events grew)
expect "and gets it" wait_until 60 more_events grew "$((grown > 1 ? 1 : grown))"
expect "it goes on" wait_until 120 steps_done 150
expect "no step is lost" equal "$(steps_lost)" 0
expect "each step is done once" all_steps_once
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 140

# All processes on the controller's node are killed: nobody cancels what waits.
expect "something waits" wait_until 60 eval '[ -n "$(helpers PD %A)" ]'
scontrol update jobid="$job" requeue=0
first=$job
keepers() {
  local pid
  for pid in $(pids_of sailor-agent); do ! tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "sailor-agent helper {" || echo "$pid"; done
}
kill -9 $(keepers) $(pids_of sailor-run)
expect "the helper job that runs ends" wait_until 150 helpers_are R %A ""
expect "what waits still waits" test -n "$(helpers PD %A)"
scancel "$others"
expect "it starts, and ends by itself" wait_until 90 no_helpers
expect "no process is left" wait_until 60 no_training_processes
wait_idle

# The whole job.
rm -rf checkpoints
sed -i 's/steps: 100000/steps: 150/; s/, grow_every: 2/, grow_every: 0/' job.yaml
plan_on_two_nodes
expect "submitted" submit --qos=low --sailor-plan=plan.json -o whole.log job.yaml
expect "it trains" wait_until 60 steps_done 10
whole=$job
hold "$(nodes_of_job "$job" | tr ' ' ,)"
expect "a job of higher priority has its nodes" job_runs "$held"
expect "the state was saved" has_text whole.log "saving the training state"
expect "another job continues" has_text whole.log "training continues in job"
stopped=$(tail -1 "sailor-$whole/metrics.csv" | cut -d, -f1)
scancel "$held"
finished() { [ "$(json "sailor-$whole/summary.json" status 2>/dev/null)" = finished ]; }
expect "it does all steps" wait_until 200 finished
expect "after step $stopped" has_text whole.log "after step $stopped"
expect "each of them once" all_steps_once
expect "with the losses of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$whole/metrics.csv" 1e-9 140
finish
