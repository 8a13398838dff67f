#!/bin/bash
# Planned submissions to a controller with thousands of nodes and of waiting jobs. The nodes are entries of slurm.conf that all have the
# address of one slurmd, and are in use by allocations without processes. Prints
#
#     nodes,free_nodes,waiting_jobs,submission,seconds,cpu_s,rpcs
#
# once per submission (a dry run). rpcs: requests that it sent to the controller (sdiag).
#
# usage: tests/bench/large_cluster.sh [--nodes N] [--jobs N] [--build DIR]      default 5000 nodes, 20000 waiting jobs
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
nodes=5000 jobs=20000 build=$root/build
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) nodes=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --build) build=$2; shift ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
export SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-large.XXXXXX")
trap '"$root/tests/cluster.sh" down >/dev/null 2>&1' EXIT
eval "$("$root/tests/cluster.sh" up --nodes 3 --build "$build" 2>/dev/null)"
user() { if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- "$@"; else "$@"; fi; }
cd "$SAILOR_CLUSTER_DIR/work"
chmod 1777 .

# The large part of the cluster, with intervals as sites have them; the controller pings every node itself.
some=$((nodes * 3 / 5))
address=$(sed -n 's/^NodeName=a1 \(NodeHostname=[^ ]* NodeAddr=[^ ]* Port=[0-9]*\) .*/\1/p' ../etc/nodes.conf)
cat >>../etc/nodes.conf <<CONF
NodeName=x[1-$some] $address CPUs=64 RealMemory=500000 Gres=gpu:a100:8 State=UNKNOWN
NodeName=y[1-$((nodes - some))] $address CPUs=64 RealMemory=500000 Gres=gpu:v100:8 State=UNKNOWN
CONF
sed -i 's/^SlurmdTimeout=.*/SlurmdTimeout=600/; s/^SchedulerParameters=.*/SchedulerParameters=bf_interval=30/' ../etc/slurm.conf
cat >>../etc/slurm.conf <<CONF
PartitionName=large Nodes=x[1-$some],y[1-$((nodes - some))] MaxTime=INFINITE State=UP
MaxJobCount=$((jobs + 1000))
TreeWidth=65533
CONF
controller=$(cat ../run/slurmctld.pid)
kill "$controller"
while kill -0 "$controller" 2>/dev/null; do sleep 0.1; done
slurmctld -c
until scontrol ping | grep -q UP; do sleep 0.5; done
scontrol update nodename="x[1-$some],y[1-$((nodes - some))]" state=down reason=new
scontrol update nodename="x[1-$some],y[1-$((nodes - some))]" state=idle

cp "$root"/tests/e2e/fixtures/tiny.yaml .
cp "$root"/tests/e2e/fixtures/tiny_profile.json ../profiles/
chmod a+r tiny.yaml ../profiles/*
count() { sinfo -h -p large -t "$1" -o %D | awk '{ sum += $1 } END { print sum + 0 }'; }
# submission NAME OPTION...
submission() {
  local name=$1 TIMEFORMAT='%R,%U'
  shift
  sdiag -r >/dev/null
  { time user sbatch --sailor-objective=throughput -p large --sailor-dry-run "$@" tiny.yaml >../log/submission 2>&1; } 2>time || {
    cat ../log/submission >&2
    exit 1
  }
  echo "$nodes,$(count idle),$(squeue -h -t PD -o %A | wc -l),$name,$(tail -1 time),$(sdiag | awk -v user="$SAILOR_CLUSTER_USER" '
    /statistics by user/ { users = 1 } /^Pending RPC/ { users = 0 }
    users && $1 == user { sub(/.*count:/, ""); sum += $1 } END { print sum + 0 }')"
}

echo nodes,free_nodes,waiting_jobs,submission,seconds,cpu_s,rpcs
submission idle
held=$((nodes / 4))
for hours in 1 5 9; do user salloc --no-shell -p large -N "$held" --exclusive --time="$hours:00:00" 2>/dev/null; done
user salloc --no-shell -p large -N $((nodes - 3 * held - nodes / 50)) --exclusive --time=24:00:00 2>/dev/null
submission part
user salloc --no-shell -p large -N $((nodes / 50)) --exclusive --time=30 2>/dev/null
user "$build/bin/fill_queue" large "$jobs"
submission full
submission full
