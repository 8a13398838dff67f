#!/bin/bash
# fill.sh FILE: submits jobs of others to the throw-away cluster in $SAILOR_CLUSTER_DIR, at their times. See tests/cluster.sh --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"
[ $# = 1 ] && [ -r "$1" ] || { say "fill needs a file of jobs (busy_workload prints one)"; exit 2; }
jobs=$(realpath "$1")
[ -s "$cluster_dir/exports" ] || fail "no cluster in $cluster_dir"
eval "$(cat "$cluster_dir/exports")"
[ "$(head -1 "$jobs")" = what,submit_s,duration_s,limit_min,nodes,partition,steps ] || fail "$jobs: not as busy_workload prints it"
as_user() { if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- "$@"; else "$@"; fi; }
cd "$cluster_dir/work"
begun=$(date +%s.%N)
while IFS=, read -r what submit_s duration_s limit_min nodes partition _; do
  case $what in other | running) ;; *) continue ;; esac
  sleep "$(awk "BEGIN { s = $begun + $submit_s - $(date +%s.%N); print (s > 0 ? s : 0) }")"
  as_user sbatch --quiet -J "$what" -p "$partition" -N "$nodes" --exclusive -t "$limit_min" -o /dev/null --wrap "sleep $duration_s"
done <"$jobs"
