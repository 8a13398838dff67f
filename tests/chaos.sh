#!/bin/bash
# Random faults in a training job on its own throw-away cluster: checks that it continues, how soon, and with the same losses, bit by bit.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: chaos.sh [--setting NAME] [--seed S] [--faults N] [--minutes M] [--out DIR] [--build DIR]

Trains an elastic job of eight ranks on six emulated nodes, with usual hyper-parameters, and injects N faults (6) within M minutes (3) at
random times: kills or stops ranks, kills agents, powers nodes off (they come back later), one or two at once. Settings:
  umbrella        (the default) one job in a partition over all nodes; as root also a link that is cut, and a disk that is full for a while
  components      a heterogeneous job of three partitions; of each a node stays on
  growth          a job of two nodes that takes others as they become free, and gives one back when another user's job waits for it
  no-checkpoints  one job in a partition over all nodes, whose ranks have the only copies of the state; one node at a time is off

Then the same training runs again without faults, under the same plans for the same steps (replay_run): no loss may differ in any bit.
Also checks for leftover processes and files.

Prints, and writes to DIR/chaos.csv (a scratch directory), one line per fault:
  t           seconds since training began          detect_s   from the fault until the controller noticed it
  fault       kind of fault                         plan_s     planning              groups_s  new communicators
  target      the process or node                   state_s    moving the state      resume_s  from the fault to the next step
  lost_steps  finished steps that were repeated     pids_kept  no survivor was restarted
--seed 0 (the default) draws a seed and prints it. With --faults 0 there are no faults for M minutes, but other programs load every core:
any fault that the controller reports then is a false alarm. Exit code 1 when a fault was not survived, a survivor was restarted, a loss
differs, the job ended, training began again at the first step, many changes repeated steps, processes or files were left, or a process
was taken for lost without a fault.
USAGE
}

setting=umbrella seed=0 faults=6 minutes=3 out= build=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --setting | --seed | --faults | --minutes | --out | --build) [ $# -ge 2 ] || { usage >&2; exit 2; }; declare "${1#--}=$2"; shift ;;
    *) echo "chaos.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
for number in "$seed" "$faults" "$minutes"; do
  [[ $number =~ ^[0-9]+$ ]] || { echo "chaos.sh: $number is not a number" >&2; exit 2; }
done
case $setting in
  umbrella | components | growth | no-checkpoints) ;;
  *) echo "chaos.sh: unknown setting $setting (umbrella, components, growth, no-checkpoints)" >&2; exit 2 ;;
esac
[ "$seed" != 0 ] || seed=$(($(od -An -N3 -tu4 /dev/urandom) + 1))
RANDOM=$((seed % 32768))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=$out  # the tests' library has an `out` of its own
[ -z "$results" ] || { mkdir -p "$results" && results=$(cd "$results" && pwd); }
[ -z "$build" ] || build=$(realpath "$build")
# A link and a file system of its own, where that is possible.
apart=
if [ "$setting" = umbrella ] && [ "$UID" = 0 ]; then
  if [ -z "${SAILOR_OWN_NETWORK:-}" ] && unshare -n -m true 2>/dev/null; then
    SAILOR_OWN_NETWORK=yes exec unshare -n -m --propagation private -- "$0" --setting "$setting" --seed "$seed" --faults "$faults" \
      --minutes "$minutes" ${results:+--out "$results"} ${build:+--build "$build"}
  fi
  if [ -n "${SAILOR_OWN_NETWORK:-}" ]; then
    apart=v1
    mkdir -p /run/netns && mount -t tmpfs none /run/netns
  fi
fi
. "$here/e2e/elastic_lib.sh" chaos ${apart:+--apart "$apart"} ${build:+--build "$build"}
results=${results:-$work/chaos}
mkdir -p "$results"
load=()  # processes that do nothing but work
keep_logs() { [ -z "${job:-}" ] || cp -r "$work/sailor-$job" "$work/slurm-$job.out" "$results/" 2>/dev/null || true; }
trap 'keep_logs; [ ${#load[@]} = 0 ] || kill "${load[@]}" 2>/dev/null || true; umount "$work/checkpoints" 2>/dev/null || true; leave; "$here/cluster.sh" down' EXIT

setup_elastic 1000000 fp64
kinds=(kill_rank kill_rank stop_rank kill_two_ranks kill_agent kill_node kill_two_nodes)
options=()
case $setting in
  umbrella)
    # Nodes that were off for too long for Slurm come back as free nodes.
    sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 5}/' job.yaml
    if [ -n "$apart" ]; then
      kinds+=(cut_link fill_disk)
      sed -i 's/every_steps: 20/on_error: continue, &/' job.yaml
      mkdir checkpoints
      mount -t tmpfs -o size=32m none checkpoints
      chown "$SAILOR_CLUSTER_USER" checkpoints
    fi ;;
  components)
    sed -i '/umbrella_partition/d' "$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
    options=(-p "$(sinfo -h -o %R | sort -u | grep -v '^all$' | paste -sd,)") ;;
  growth)
    kinds+=(waiting_job waiting_job)
    sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 2, yield: true}/' job.yaml
    plan_on_two_nodes ;;
  no-checkpoints) sed -i '/^checkpoint:/d' job.yaml ;;
esac
start_elastic "${options[@]}" || { echo "$err"; exit 1; }
wait_until 60 steps_done 5 || { echo "training does not begin"; cat "$output"; exit 1; }

csv=$results/chaos.csv
echo "t,fault,target,detect_s,plan_s,groups_s,state_s,resume_s,lost_steps,pids_kept" | tee "$csv"
bad=0
begun=$(now)
off=()     # nodes that are powered off, as NODE:WHEN_TO_REVIVE
pick() { shift $((RANDOM % $#)); picked=$1; }  # not in a subshell, where $RANDOM does not follow from the seed
revive_due() {
  local entry left=()
  for entry in "${off[@]}"; do
    if [ $SECONDS -ge "${entry#*:}" ]; then revive_nodes "${entry%:*}"; else left+=("$entry"); fi
  done
  off=("${left[@]}")
}

# One fault: sets fault, target and the time, at.
do_fault() {
  local pids nodes
  at=$(now)
  mapfile -t pids < <(working_ranks | cut -d' ' -f1)
  mapfile -t nodes < <(nodes_in_use)
  pick "${kinds[@]}"
  fault=$picked
  # A slurmd in another network namespace is not started again.
  case $fault in kill_node | kill_two_nodes) mapfile -t nodes < <(printf '%s\n' "${nodes[@]}" | grep -vx "${apart:-none}") ;; esac
  # Something must be left to train on.
  case $setting in
    components) mapfile -t nodes < <(with_neighbour "${nodes[@]}") ;;
    no-checkpoints) [ ${#off[@]} = 0 ] || nodes=() ;;
  esac
  [ $fault != kill_two_nodes ] || { [ ${#nodes[@]} -ge 3 ] && [[ $setting == umbrella || $setting == growth ]]; } || fault=kill_node
  [ $fault != kill_node ] && [ $fault != kill_agent ] || [ ${#nodes[@]} -ge 2 ] || fault=kill_rank
  case $fault in
    kill_rank | stop_rank | kill_two_ranks) pick "${pids[@]}" ;;
    kill_agent | kill_node | kill_two_nodes) pick "${nodes[@]}" ;;
  esac
  target=$picked
  case $fault in
    kill_rank) kill -9 "$target" || true ;;
    stop_rank) kill -STOP "$target" || true ;;
    kill_two_ranks)
      pick "${pids[@]}"
      target+=" $picked"
      kill -9 $target || true ;;
    kill_agent)
      for pid in $(pids_of sailor-agent); do [ "$(node_of_pid "$pid")" != "$target" ] || kill -9 "$pid" || true; done ;;
    kill_node | kill_two_nodes)
      if [ $fault = kill_two_nodes ]; then
        while [ "$picked" = "$target" ]; do pick "${nodes[@]}"; done
        target+=" $picked"
      fi
      kill_nodes $target
      at=$killed_at
      for node in $target; do off+=("$node:$((SECONDS + 5 + RANDOM % 15))"); done ;;
    cut_link)
      target=$apart
      ip link set sailor-apart down
      later $((2 + RANDOM % 15)) ip link set sailor-apart up ;;
    fill_disk)
      target=checkpoints
      head -c 64M /dev/zero >checkpoints/filler 2>/dev/null || true
      later $((5 + RANDOM % 15)) rm -f checkpoints/filler ;;
    waiting_job)
      run sbatch -p medium -N1 --exclusive -o /dev/null --wrap "sleep $((5 + RANDOM % 15))"
      target=$(job_submitted) ;;
  esac
}
# later SECONDS COMMAND...: in the background.
later() { (sleep "$1"; "${@:2}") & }
# Of these nodes, those whose partition keeps another node (a1 and a2, ...).
with_neighbour() {
  local node
  for node; do
    if [ "$node" = a2 ] || [[ " ${off[*]%:*} " != *" ${node:0:1}"[12]" "* ]]; then echo "$node"; fi
  done
}

# The first event of that name after a time, waited for.
event_after() {  # NAME TIME SECONDS
  local deadline=$((SECONDS + $3)) line
  while [ $SECONDS -lt $deadline ]; do
    line=$(awk -v name="\"event\":\"$1\"" -v after="$2" 'index($0, name) { t = $0; sub(/.*"time":/, "", t); if (t + 0 >= after) { print; exit } }' "$events")
    [ -z "$line" ] || { echo "$line"; return 0; }
    sleep 0.1
  done
  return 1
}
progresses() {
  local step
  step=$(tail -1 "sailor-$job/metrics.csv" | cut -d, -f1)
  sleep 5
  [ "$(tail -1 "sailor-$job/metrics.csv" | cut -d, -f1)" -gt "$step" ]
}
difference() { awk "BEGIN { printf \"%.2f\", $2 - $1 }"; }

if [ "$faults" = 0 ]; then
  for ((i = 0; i < $(nproc); i++)); do
    while :; do :; done &
    load+=($!)
  done
  sleep $((minutes * 60))
  kill "${load[@]}"
  load=()
  alarms=$(grep -cE '"event":"(lost|dropped|stall|interrupt)"' "$events") || true
  echo "# $minutes undisturbed minutes under load: $alarms false alarms"
  if [ "$alarms" != 0 ]; then grep -E '"event":"(lost|dropped|stall|interrupt)"' "$events" | head -5 >&2; bad=1; fi
fi
pause=$((faults > 0 ? minutes * 60 / faults : 0))
for ((i = 1; i <= faults; i++)); do
  # At a random time of what is left of its share of the minutes, whatever the job is doing then.
  part=$RANDOM
  for s in $(awk "BEGIN { s = ($i * $pause - ($(now) - $begun)) * $part / 32768; for (; s > 1; --s) print 1; print (s > 0 ? s : 0) }"); do
    sleep "$s"
    revive_due
  done
  do_fault
  row="$(difference "$begun" "$at"),$fault,$target"
  if [ $fault != waiting_job ] && lost=$(event_after lost "$at" 15) && resumed=$(event_after resumed "$(field "$lost" time)" 30); then
    running=$(grep '"event":"running"' "$events" | grep "\"generation\":$(field "$resumed" generation),")
    row+=",$(difference "$at" "$(field "$lost" time)"),$(field "$running" plan_s),$(field "$running" groups_s),$(field "$running" state_s)"
    row+=",$(difference "$at" "$(field "$resumed" time)"),$(field "$running" steps_lost),$(field "$running" pids_kept)"
    [ "$(field "$running" pids_kept)" = true ] || bad=1
  elif progresses; then
    row+=",,,,,,,"  # no loss, or of a process that the plan had no use for at that moment
  else
    row+=",,,,,not survived,,"
    bad=1
    tail -3 "$events" >&2
  fi
  echo "$row" | tee -a "$csv"
  # It would train for days.
  if job_ended "$job"; then
    echo "the job has ended:"
    tail -5 "$output"
    bad=1
    break
  fi
  # Until its share is over.
  while awk "BEGIN { exit !($(now) - $begun < $i * $pause) }"; do sleep 0.5; revive_due; done
done

# Was everything trained that the plans would have trained without faults? On processors a plan always gives the same bits.
[ "$faults" = 0 ] || wait_until 60 more_events resumed 0 || true
wait  # for the ends of faults
sleep 3
scancel "$job"
wait_until 40 no_training_processes || { echo "processes are left:"; training_processes; bad=1; }
begun_again=$(grep -c '"state_from":"start"' "$events") || true
[ "$begun_again" = 1 ] || { echo "training began $begun_again times with the initial values"; bad=1; }
# Was every process that was taken for silent a target, or on one?
false_alarms() {
  awk -F, -v begun="$begun" '
    function value(key, t) { t = $0; sub(".*\"" key "\":\"?", "", t); sub(/[",}].*/, "", t); return t }
    NR == FNR { at[++n] = $1; targets[n] = " " $3 " "; next }
    /"event":"lost"/ && /no answer/ {
      since = value("time") - begun
      for (i = n; i > 0; --i)
        if (since > at[i] - 1 && since < at[i] + 20 && (index(targets[i], " " value("node") " ") || index(targets[i], " " value("pid") " "))) break
      if (!i) print "a false alarm: " $0
    }' "$csv" "$events"
}
alarms=$(false_alarms)
[ -z "$alarms" ] || { echo "$alarms"; bad=1; }
# Steps are repeated only after all who have done them are lost, which is seldom.
read -r changes repeating < <(sed -n 's/.*"event":"running".*"steps_lost":\([0-9]*\).*/\1/p' "$events" | awk '$1 > 1 { ++n } END { print NR, n + 0 }')
[ "$repeating" -le $((1 + changes / 10)) ] || { echo "$repeating of $changes changes repeated more than one step"; bad=1; }
replayed=$(user replay_run job.yaml "sailor-$job" | tee "$results/replay.csv" | tail -1) || bad=1
[ -z "$(find "sailor-$job" -name '*.tmp*')" ] || { echo "files are left:"; find "sailor-$job" -name '*.tmp*'; bad=1; }
# Of the plans, over time.
mean_ranks() {
  sed -n 's/^{"time":\([0-9.]*\),"event":"running".*"ranks":\([0-9]*\),.*/\1 \2/p; s/^{"time":\([0-9.]*\),"event":"ended".*/\1 0/p' "$events" |
    awk 'NR > 1 { sum += ranks * ($1 - since); time += $1 - since } { since = $1; ranks = $2 } END { printf "%.1f", sum / time }'
}
echo "# $setting, seed $seed, $faults faults, $(mean_ranks) ranks on average, loss $(tail -1 "sailor-$job/metrics.csv" | cut -d, -f2)"
echo "$replayed"
for node in "${off[@]}"; do revive_nodes "${node%:*}"; done
exit $bad
