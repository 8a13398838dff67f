#!/bin/bash
# A training job adds useful nodes that become free. A node that is too slow is not used. A node that another job releases is requested, its
# ranks join, the iteration time falls as predicted, and the losses are equal to those of the undisturbed run. With elastic.yield the node
# is returned when another job waits for it, and taken again later, and no step is lost. After the job is cancelled,
# no helper jobs remain. A job that would wait behind others starts on what is free and queues for the rest. With --requeue the controller is killed first: the helper jobs end with it, Slurm restarts the job (which takes
# minutes), and it grows again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" growth

setup_growth
sed -i 's/steps: 100000/steps: 120/' reference.yaml

# hold NODES: another user's plain job on these nodes; sets held to its id.
hold() {
  run sbatch -p all -w "$1" -N "$(tr , '\n' <<<"$1" | wc -l)" --exclusive --wrap "sleep 3600"
  held=$(job_submitted)
  wait_until 30 job_runs "$held"
}
job_runs() { scontrol show job -o "$1" | grep -q JobState=RUNNING; }
helpers() { squeue -h -t R -n "sailor-$job-helper" -o %N | sort | paste -sd' '; }
no_helpers() { [ -z "$(squeue -h -n "sailor-$job-helper" -o %A)" ]; }
submit() {
  run sbatch --sailor-objective=throughput "$@"
  job=$(job_submitted)
  output=$work/slurm-$job.out events=$work/sailor-$job/events.jsonl
  [ -n "$job" ]
}
status() { run sailor status "$job" --json; echo "$out"; }
iteration_s() { json <(status) iteration_s; }

hold a2,v2,t1
others=$held
hold v1
next=$held

# The undisturbed run, on the one remaining node and a useless one.
expect "submitted" submit reference.yaml
reference=$job
wait_until 30 job_runs "$job" || true
expect "it runs on the node that helps" equal "$(nodes_of_job "$job")" a1
expect "the undisturbed run ends" wait_until 200 job_ended "$reference"
expect "well" equal "$(json "sailor-$reference/summary.json" status)" finished

sed -i 's/grow_every: 2/grow_every: 2, yield: true/' job.yaml
expect "submitted" submit job.yaml
expect "it trains" wait_until 60 steps_done 25
expect "nodes that would help are waited for" wait_until 30 more_events grow_queued 0
expect "a node that would not help is not taken" equal "$(helpers)" ""
before=$(iteration_s)

scancel "$next"
if ! wait_until 60 more_events grew 0; then not_ok "the node that another job gave back is taken"; tail -5 "$events"; cat "sailor-$job/logs/helpers.log"; fi
expect "the helper job has it" equal "$(helpers)" v1
expect "the plan uses it" wait_until 30 more_events resumed 0
expect "8 ranks" equal "$(field "$(last_event running)" ranks)" 8
expect "the first 4 live on" contains "$(last_event running)" '"pids_kept":true'
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it goes on" wait_until 60 steps_done $((steps + 30))
now=$(iteration_s) promised=$(field "$(grep '"event":"grow_queued"' "$events" | grep V100 | tail -1)" then_s)
expect "an iteration takes $now s instead of $before s, as promised ($promised s)" \
  awk "BEGIN { exit !($now < 0.9 * $before && $now < 1.2 * $promised && $now > 0.8 * $promised) }"
expect "the useless node is still free" equal "$(sinfo -h -n t2 -o %T -p all)" idle

# Another job asks for any node of a partition whose nodes are all in use.
expect "it waits behind all others" contains "$(scontrol show job -o "$(squeue -h -t R -n "sailor-$job-helper" -o %A)")" " Nice=2147483645 "
resumed=$(count_events resumed) steps=$(wc -l <"sailor-$job/metrics.jsonl")
run sbatch -p medium -N1 --exclusive -o /dev/null --wrap "sleep 3600"
next=$(job_submitted)
expect "another job gets the helper's node" wait_until 60 job_runs "$next"
expect "the log says why" has_text "$output" "elastic: v1 is released: job $next waits for it"
expect "training goes on without it" wait_until 30 more_events resumed "$resumed"
expect "on 4 ranks" equal "$(field "$(last_event running)" ranks)" 4
expect "no step is lost" equal "$(steps_lost)" 0
expect "it goes on" wait_until 60 steps_done $((steps + 10))
expect "the other job keeps it" job_runs "$next"
grown=$(count_events grew)
scancel "$next"
expect "later it has the node again" wait_until 90 more_events grew "$grown"
expect "no step is lost" equal "$(steps_lost)" 0

expect "it goes on" wait_until 120 steps_done 120
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 110

# Better nodes become free: eight sequences need eight GPUs at most, and those of v1 are slower.
scancel "$others"
if ! wait_until 60 more_events released 0; then not_ok "the node that is no longer useful is released"; tail -5 "$events"; fi
only_the_better() { [ "$(helpers)" = a2 ]; }
eight_ranks() { [ "$(field "$(last_event running)" ranks)" = 8 ]; }
expect "a better one is there instead" wait_until 40 only_the_better
expect "on 8 ranks" wait_until 30 eight_ranks # on a busy machine one node has left before the other takes part
slower_is_free() { [ "$(sinfo -h -n v1 -o %T -p all)" = idle ]; }
expect "others can have it" wait_until 20 slower_is_free

# Slurm restarts the job, which continues from its newest state.
if [ "${1:-}" = --requeue ]; then
  hold v1,v2,t1
  others=$held
  grown=$(count_events grew) steps=$(wc -l <"sailor-$job/metrics.jsonl")
  kill -9 "$(pids_of sailor-run)"
  expect "its helper job ends with the controller" wait_until 30 no_helpers
  expect "Slurm starts it again" wait_until 90 started_again
  # Slurm waits two minutes, until the credentials of the first start have expired.
  expect "it trains" wait_until 240 steps_done $((steps + 20))
  expect "from its newest state" contains "$(last_event running)" '"state_from":"checkpoint"'
  expect "it takes the node again" wait_until 60 more_events grew "$grown"
fi

scancel "$job"
expect "no process is left" wait_until 30 no_training_processes
expect "no helper job is left" wait_until 10 no_helpers
expect "the last event is its end" contains "$(tail -1 "$events")" '"event":"ended"'
[ "${1:-}" != --requeue ] || scancel "$others"

# Behind another job in the queue, it trains on what is free, and gets the node in its turn.
wait_idle
hold a2,v2,t1,t2
others=$held
run sbatch -p all -w v1 --exclusive -t 2 -o /dev/null --wrap "sleep 30"
first=$(job_submitted)
wait_until 30 job_runs "$first"
run sbatch -p all -w v1 --exclusive -t 1 -o /dev/null --wrap "sleep 5"
second=$(job_submitted)
expect "submitted" submit job.yaml
expect "it says what it starts on, and waits for" contains "$err" "starts: start now on 4 A100-40 and queue for 4 V100-16, end "
expect "it trains" wait_until 60 more_events running 0
expect "on what is free" equal "$(nodes_of_job "$job")" a1
expect "and queues" wait_until 30 more_events grow_queued 0
helper=$(squeue -h -t PD -n "sailor-$job-helper" -o "%A %f %p" | sort | head -1 | cut -d' ' -f1)
expect "in its turn, although it yields" contains "$(scontrol show job -o "$helper")" " Nice=0 "
expect "the other job comes first" wait_until 90 job_runs "$second"
expect "then it has the node" wait_until 90 more_events grew 0
expect "the plan uses it" wait_until 30 more_events resumed 0
expect "no step is lost" equal "$(steps_lost)" 0
scancel "$job" "$others"
expect "no helper job is left" wait_until 30 no_helpers
finish
