#!/bin/bash
# The link to a node of a training job is cut: the others continue training without a restart, the disconnected ranks end when
# their lease expires, and the node is used again once the link is back. In a separate network namespace.
set -euo pipefail
[ "$UID" = 0 ] || { echo "skipped: network namespaces need root"; exit 77; }
command -v ip >/dev/null || { echo "skipped: there is no ip"; exit 77; }
if [ -z "${SAILOR_OWN_NETWORK:-}" ]; then
  unshare -n -m true 2>/dev/null || { echo "skipped: network namespaces are not allowed"; exit 77; }
  SAILOR_OWN_NETWORK=yes exec unshare -n -m --propagation private -- "$0"
fi
mkdir -p /run/netns && mount -t tmpfs none /run/netns  # visible in this namespace only
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" partition --apart v1

setup_elastic 100000 fp64
sed -i 's/enabled: true/enabled: true, grow_every: 0/' job.yaml
sed -i 's/steps: 100000/steps: 150/' reference.yaml
train_reference
expect "well" equal "$(json "sailor-$reference/summary.json" status)" finished
wait_idle

expect "submitted" start_elastic
expect "it trains" wait_until 60 steps_done 20
ranks_on() { ranks | awk -v node="$1" '$2 == node { print $1 }' | sort; }
ranks_elsewhere() { ranks | awk -v node="$1" '$2 != node { print $1 }' | sort; }
isolated=$(ranks_on v1) others=$(ranks_elsewhere v1)
expect "a rank is on the node apart" test -n "$isolated"

start=$(now)
ip link set sailor-apart down
expect "training goes on" wait_until 60 more_events resumed 0
echo "  after $(seconds_since "$start") s"
expect "no survivor was started again" contains "$(last_event running)" '"pids_kept":true'
expect "the others live on" equal "$(ranks_elsewhere v1)" "$others"
none_isolated() { [ -z "$(ranks_on v1)" ]; }
expect "who is cut off ends" wait_until 15 none_isolated
echo "  after $(seconds_since "$start") s"
steps=$(wc -l <"sailor-$job/metrics.jsonl")
expect "it trains on" wait_until 30 steps_done $((steps + 20))

ip link set sailor-apart up
back() { [ -n "$(ranks_on v1)" ]; }
expect "the node is used again when the link is back" wait_until 120 back
expect "it goes on" wait_until 60 steps_done 160
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 140
scancel "$job"
expect "no process is left" wait_until 60 no_training_processes
finish
