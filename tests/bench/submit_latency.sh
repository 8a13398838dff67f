#!/bin/bash
# Overhead of the plugin at submission. Prints
#
#     case,runs,median_ms,p90_ms,median_kb
#
# without, with: `sbatch --hold --wrap true` without and with the plugin, alternating; kb: peak resident memory of sbatch. planned-N: a planned submission on a cluster of N nodes, all
# of which the planner may use; from the start of sbatch to its end. started-N: the same on the few nodes that are up, for a job that starts at
# once and is checked. Exits with 1 when plain jobs take 1 ms or 300 kB more, or a planned one 1 s.
#
# usage: tests/bench/submit_latency.sh [--runs N] [--nodes N] [--plain]      default 60 runs, 1000 nodes (most of them powered-down cloud nodes)
#     --plain   only plain jobs
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=60 nodes=1000 planned=10
while [ $# -gt 0 ]; do
  case $1 in
    --runs) runs=$2; shift ;;
    --nodes) nodes=$2; shift ;;
    --plain) planned=0 ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
export SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-latency.XXXXXX")
trap '"$root/tests/cluster.sh" down >/dev/null 2>&1' EXIT
eval "$("$root/tests/cluster.sh" up --nodes 6 2>/dev/null)"
etc=$SAILOR_CLUSTER_DIR/etc
# Cloud nodes that nobody has started: slurmctld treats them as it treats any other, and they need no daemon here.
cloud=$(((nodes - 6) / 3))
{
  for kind in "ca a100 4" "cv v100 4" "ct t4 2"; do
    read -r name type count <<<"$kind"
    echo "NodeName=$name[1-$cloud] NodeHostname=$name[1-$cloud] NodeAddr=127.0.0.1 Port=1 CPUs=64 RealMemory=64000 Gres=gpu:$type:$count State=CLOUD"
    echo "NodeName=$name[1-$cloud] Name=gpu Type=$type Count=$count" >>"$etc/gres.conf"
  done
} >>"$etc/nodes.conf"
{
  echo "PartitionName=cloud-a Nodes=ca[1-$cloud] State=UP MaxTime=12:00:00"
  echo "PartitionName=cloud-v Nodes=cv[1-$cloud] State=UP MaxTime=12:00:00"
  echo "PartitionName=cloud-t Nodes=ct[1-$cloud] State=UP MaxTime=12:00:00"
  echo "PrivateData=cloud"
  echo "ResumeProgram=/bin/true"
  echo "SuspendProgram=/bin/true"
  echo "SuspendTime=600"
  echo "MaxArraySize=1001"
} >>"$etc/slurm.conf"
kill "$(cat "$SAILOR_CLUSTER_DIR/run/slurmctld.pid")"
sleep 1
slurmctld >/dev/null 2>&1 </dev/null
for _ in $(seq 100); do sinfo -h >/dev/null 2>&1 && break; sleep 0.1; done
seen=$(sinfo -h -N -o %N | sort -u | wc -l)
sed '/^PlugStackConfig/d' "$etc/slurm.conf" >"$etc/without.conf"
echo "PlugStackConfig=/dev/null" >>"$etc/without.conf"
cp "$root/tests/e2e/fixtures/tiny.yaml" "$SAILOR_CLUSTER_DIR/work"
cp "$root/tests/e2e/fixtures/tiny_profile.json" "$SAILOR_CLUSTER_DIR/profiles"
chmod a+r "$SAILOR_CLUSTER_DIR/work/tiny.yaml" "$SAILOR_CLUSTER_DIR/profiles/tiny_profile.json" "$etc/without.conf"
cd "$SAILOR_CLUSTER_DIR/work"

# One process of the user measures its own sbatch calls, so that nothing else is counted. Times in microseconds, one a line.
cat >measure.sh <<'SCRIPT'
#!/bin/bash
now() { local t=$EPOCHREALTIME; echo "${t/./}"; }
timed() { # FILE COMMAND...
  local file=$1 begin end
  shift
  begin=${EPOCHREALTIME/./}
  "$@" >/dev/null 2>>errors </dev/null || echo "failed: $*" >>errors
  end=${EPOCHREALTIME/./}
  echo $((end - begin)) >>"$file"
}
with=$SLURM_CONF
for ((i = 0; i < $1; i++)); do
  for turn in $([ $((i % 2)) = 0 ] && echo without with || echo with without); do
    conf=$with
    [ $turn = with ] || conf=${with%slurm.conf}without.conf
    SLURM_CONF=$conf timed $turn sbatch --hold -o /dev/null --wrap true
  done
done
peak_kb() { # FILE COMMAND...: peak resident memory of a command
  python3 - "$@" <<'PYTHON'
import os, subprocess, sys
null = open(os.devnull, "r+")
process = subprocess.Popen(sys.argv[2:], stdin=null, stdout=null)
_, status, usage = os.wait4(process.pid, 0)
open(sys.argv[1], "a").write(f"{usage.ru_maxrss}\n")
PYTHON
}
for ((i = 0; i < 20; i++)); do
  for turn in without with; do
    conf=$with
    [ $turn = with ] || conf=${with%slurm.conf}without.conf
    SLURM_CONF=$conf peak_kb $turn.kb sbatch --hold -o /dev/null --wrap true
  done
done
for ((i = 0; i < $2; i++)); do
  timed planned sbatch --hold --sailor-objective=throughput --sailor-wait=nodes tiny.yaml
done
for ((i = 0; i < $2; i++)); do
  scancel -u "$(id -un)"
  while squeue -h -t running,completing -o %A | grep -q .; do sleep 0.1; done
  timed started sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -o /dev/null --wrap 'sleep 60'
done
SCRIPT
chmod a+rx measure.sh
if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- ./measure.sh "$runs" "$planned"; else ./measure.sh "$runs" "$planned"; fi
if grep -q failed: errors; then cat errors >&2; exit 1; fi

quantile() { sort -n "$1" | awk -v q="$2" '{v[NR] = $1} END {i = int(q * (NR - 1) + 1.5); print v[i]}'; }
row() {
  printf '%s,%d,%.2f,%.2f,%s\n' "$1" "$(wc -l <"$2")" "$(quantile "$2" 0.5)e-3" "$(quantile "$2" 0.9)e-3" \
    "$([ ! -f "$2.kb" ] || quantile "$2.kb" 0.5)"
}
echo case,runs,median_ms,p90_ms,median_kb
row without without
row with with
declare -i more_us=$(quantile with 0.5)-$(quantile without 0.5) more_kb=$(quantile with.kb 0.5)-$(quantile without.kb 0.5) slowest_us=0
echo "# plain jobs: $more_us us (limit 1000) and $more_kb kB (limit 300) more"
if ((planned > 0)); then
  for case in planned started; do
    row "$case-$seen" $case
    if (($(quantile $case 0.5) > slowest_us)); then slowest_us=$(quantile $case 0.5); fi
  done
  echo "# planned jobs: $((slowest_us / 1000)) ms (limit 1000)"
fi
((more_us < 1000 && more_kb < 300 && slowest_us < 1000000))
