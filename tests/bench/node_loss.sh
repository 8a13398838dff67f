#!/bin/bash
# How soon an elastic job notices the loss of a node, and whether it takes a busy node for a lost one.
set -euo pipefail
usage() {
  cat <<'USAGE'
usage: tests/bench/node_loss.sh [--count N] [--busy MINUTES]

Trains on six nodes of a throw-away cluster, and loses one of them N times (default 10): in turns its link is cut, so that its machine no
longer answers, or all of its processes and those that could report their end are killed. Waits each time until the node is used again.
Prints for each loss after how many seconds the controller noticed it, and after how many the training went on. Then keeps all cores busy
for MINUTES (default 0) with four times as many processes, and prints how many processes were taken for lost meanwhile.

Fails when the median is above 2 s, a loss took more than 3 s, or a busy node was taken for lost. Needs root, for a network namespace.
USAGE
}
count=10 busy=0
arguments=("$@")
while (($#)); do
  case $1 in
    --count) count=${2:?--count needs a number}; shift ;;
    --busy) busy=${2:?--busy needs minutes}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
[ "$UID" = 0 ] || { echo "network namespaces need root" >&2; exit 1; }
if [ -z "${SAILOR_OWN_NETWORK:-}" ]; then
  SAILOR_OWN_NETWORK=yes exec unshare -n -m --propagation private -- "$0" "${arguments[@]}"
fi
mkdir -p /run/netns && mount -t tmpfs none /run/netns  # visible in this namespace only
export SAILOR_BUILD_DIR=${SAILOR_BUILD_DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/elastic_lib.sh" node-loss --apart v1
fail() { echo "$*" >&2; tail -n 5 "$output" "$events" >&2; exit 1; }

setup_elastic 100000 fp64
sed -i 's/enabled: true/enabled: true, grow_every: 0/' job.yaml
start_elastic || { echo "the job is not submitted" >&2; exit 1; }
wait_until 120 steps_done 20 || fail "training does not begin"

lost_on() { grep '"event":"lost"' "$events" | grep -c "\"node\":\"$1\"" || true; }
more_lost() { [ "$(lost_on "$1")" -gt "$2" ]; }  # NODE THAN
in_use() { nodes_in_use | grep -qx "$1"; }
# seconds_until COMMAND...: to a twentieth of a second; 30 if the command does not succeed.
seconds_until() {
  local i
  for ((i = 0; i < 600; ++i)); do
    ! "$@" || break
    sleep 0.05
  done
  awk "BEGIN { printf \"%.2f\", $(now) - $start }"
}
echo "loss,kind,noticed_s,resumed_s"
noticed=()
for ((i = 1; i <= count; ++i)); do
  kind=cut node=v1
  ((i % 2)) || { kind=killed node=v2; }
  lost=$(lost_on "$node") resumed=$(count_events resumed)
  if [ "$kind" = cut ]; then ip link set sailor-apart down; else kill_nodes "$node"; fi
  start=$(now)
  noticed+=("$(seconds_until more_lost "$node" "$lost")")
  after=$(seconds_until more_events resumed "$resumed")
  echo "$i,$kind,${noticed[-1]},$after"
  if [ "$kind" = cut ]; then ip link set sailor-apart up; else revive_nodes "$node"; fi
  wait_until 180 in_use "$node" || fail "$node is not used again"
  steps=$(wc -l <"${events%/*}/metrics.jsonl")
  wait_until 60 steps_done $((steps + 10)) || fail "it does not train on"
done
median=0 most=0
if ((count > 0)); then
  read -r median most < <(printf '%s\n' "${noticed[@]}" | sort -n | awk '{ s[NR] = $1 } END { print s[int((NR + 1) / 2)], s[NR] }')
fi
echo "# noticed after: median $median s, at most $most s"

alarms=0
if ((busy > 0)); then
  before=$(count_events lost)
  workers=()
  for ((i = 0; i < 4 * $(nproc); ++i)); do
    timeout "$((60 * busy))" sh -c 'while :; do :; done' &
    workers+=($!)
  done
  wait "${workers[@]}" || true  # timeout's status
  alarms=$(($(count_events lost) - before))
  echo "# $busy minutes with all cores busy: $alarms processes taken for lost, $(wc -l <"${events%/*}/metrics.jsonl") steps in all"
fi
scancel "$job"
wait_until 60 no_training_processes || fail "processes are left"
awk "BEGIN { exit !($median <= 2 && $most <= 3 && $alarms == 0) }"
