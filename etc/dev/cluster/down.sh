#!/bin/bash
# down.sh: ends all jobs and exactly the daemons of the throw-away cluster in $SAILOR_CLUSTER_DIR, then removes the directory.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"
[ $# = 0 ] || { say "down takes no arguments"; exit 2; }
[ -e "$cluster_dir" ] || { say "no cluster in $cluster_dir"; exit 0; }
[ -f "$cluster_dir/.sailor-cluster" ] || fail "$cluster_dir is not a throw-away cluster"
export SLURM_CONF=$slurm_conf

# Jobs first, while there is a controller that ends them cleanly.
if [ -s "$cluster_dir/run/slurmctld.pid" ] && is_ours "$(cat "$cluster_dir/run/slurmctld.pid")"; then
  jobs=$(timeout 10 squeue -h -o %A 2>/dev/null | sort -u) || jobs=
  if [ -n "$jobs" ]; then
    timeout 10 scancel $jobs 2>/dev/null || true
    for _ in $(seq 100); do [ -z "$(timeout 5 squeue -h -o %A 2>/dev/null)" ] && break; sleep 0.1; done
  fi
fi
stop_daemons
end_processes 2 $(our_pids) # leftover processes of jobs
for _ in $(seq 50); do # killed processes take a moment to disappear
  rest=$(our_pids | paste -sd' ')
  [ -n "$rest" ] || break
  sleep 0.1
done
[ -z "$rest" ] || fail "processes that do not end: $rest"
[ ! -e "$cluster_dir/.strict" ] || remove_cgroups
rm -rf -- "$cluster_dir"
say "down"
