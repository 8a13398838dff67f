#!/bin/bash
# An elastic job loses a rank, its first rank, a hung rank, a node, and two nodes at once: it continues training each time, no
# survivor is restarted, and the losses are equal to those of an undisturbed run.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" elastic

setup_elastic 100000 fp64
sed -i 's/steps: 100000/steps: 150/' reference.yaml

train_reference
expect "well" equal "$(json "sailor-$reference/summary.json" status)" finished
wait_idle

expect "submitted" start_elastic
expect "one ordinary job over all nodes" equal "$(partitions_of_job "$job")" all
expect "it trains" wait_until 60 steps_done 5

# fault WHAT COMMAND...: afterwards training continues, and survivors are not restarted. How long it took is said; chaos.sh measures it.
fault() {
  local what=$1 running before start line survivors
  shift
  running=$(count_events running)
  before=$(ranks | awk '{ print $1 }' | sort)
  start=$(now)
  "$@"
  if ! wait_until 60 resumed_after "$running"; then not_ok "$what: training goes on"; tail -5 "$events"; return; fi
  line=$(grep '"event":"running"' "$events" | sed -n "$((running + 1))p")
  ok "$what: a step is done again after $(seconds_since "$start") s ($(grep -o '"[a-z]*_s":[0-9.]*' <<<"$line" | tr '\n' ' '))"
  expect "$what: no survivor was started again" contains "$line" '"pids_kept":true'
  survivors=$(comm -12 <(echo "$before") <(ranks | awk '{ print $1 }' | sort) | wc -l)
  expect "$what: $survivors processes live on (lost: $(lost_after "$running"))" test "$survivors" -ge "$least_survivors"
}
# resumed_after COUNT: training has completed a step after more than COUNT generations.
resumed_after() {
  awk -v before="$1" '/"event":"running"/ { ++running } /"event":"resumed"/ && running > before { found = 1 } END { exit !found }' "$events"
}
# lost_after COUNT: the processes that were lost in the first change after COUNT generations, and why.
lost_after() {
  awk -v before="$1" '/"event":"running"/ { ++running } /"event":"lost"/ && running == before' "$events" |
    sed 's/.*"node":"\([^"]*\)","gpu":\([0-9]*\).*"why":"\([^"]*\)".*/\1 GPU \2 \3/' | paste -sd';'
}
# back COUNT: ended processes are restarted until there are COUNT, and no change of plan is in progress.
back() {
  expect "ended processes are restarted" wait_until 40 all_ranks_there "$1"
  wait_until 10 at_rest || true
}

least_survivors=7
fault "a rank is killed" kill -9 "$(working_rank_on "$(nodes_in_use | head -1)")"
back 8
fault "a rank on the controller's node is killed" kill -9 "$(working_rank_on $controller_node)"
back 8
fault "a rank hangs" kill -STOP "$(working_rank_on "$(nodes_in_use | tail -1)")"
back 8
least_survivors=5
gone=$(nodes_in_use | head -1)
fault "a node is lost" kill_nodes "$gone"
least_survivors=3
mapfile -t more < <(nodes_in_use | tail -2)
fault "two nodes are lost" kill_nodes "${more[@]}"
revive_nodes "$gone" "${more[@]}"
expect "nodes that come back are used again" wait_until 60 all_ranks_there 8

expect "it goes on" wait_until 60 steps_done 160
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 140
scancel "$job"
expect "no process is left" wait_until 30 no_training_processes
expect "files are whole" whole_files
expect "every step has the bits that its plan gives without faults" user replay_run job.yaml "sailor-$job"
expect "every plan says what it promises" equal "$(grep -c '"event":"generation".*"predicted_iteration_s":[0-9]' "$events")" "$(count_events generation)"
expect "the last event is its end" contains "$(tail -1 "$events")" '"event":"ended"'
finish
