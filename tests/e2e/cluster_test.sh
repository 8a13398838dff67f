#!/bin/bash
# The throw-away cluster itself: two concurrent clusters, of another size and with an umbrella partition, start and end without leftovers.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
first=$(mktemp -u "${TMPDIR:-/tmp}/sailor-two.XXXXXX")
second=$first-b
trap 'for d in "$first" "$second"; do SAILOR_CLUSTER_DIR=$d "$here/../cluster.sh" down; done' EXIT
fail() { echo "NOT OK: $*"; exit 1; }

# A directory that the daemons' user cannot enter: said at once, and nothing is started.
if [ "$UID" = 0 ]; then
  closed=$(mktemp -d "${TMPDIR:-/tmp}/sailor-closed.XXXXXX")
  said=$(SAILOR_CLUSTER_DIR=$closed/c timeout 20 "$here/../cluster.sh" up 2>&1) && fail "a cluster in a closed directory"
  grep -q "cannot enter $closed/c: set SAILOR_CLUSTER_DIR" <<<"$said" || fail "a closed directory: $said"
  left=$(SAILOR_CLUSTER_DIR=$closed/c bash -c '. "$1/../../etc/dev/cluster/common.sh"; our_pids' -- "$here")
  [ -z "$left" ] || fail "processes in a closed directory: $left"
  rmdir "$closed" || fail "a closed directory has files"
fi

SAILOR_CLUSTER_DIR=$first "$here/../cluster.sh" up >/dev/null &
SAILOR_CLUSTER_DIR=$second "$here/../cluster.sh" up --nodes 13 --umbrella >/dev/null
wait $!
nodes() { SLURM_CONF=$1/etc/slurm.conf sinfo -h -N -o '%N %T' | sort -u; }
[ "$(nodes "$first" | grep -c ' idle$')" = 6 ] || fail "the first has not 6 idle nodes"
[ "$(nodes "$second" | grep -c ' idle$')" = 13 ] || fail "the second has not 13 idle nodes"
[ "$(SLURM_CONF=$second/etc/slurm.conf sinfo -h -p all -o %D)" = 13 ] || fail "the umbrella has not all nodes"
if SAILOR_CLUSTER_DIR=$first "$here/../cluster.sh" up >/dev/null 2>&1; then fail "a second up in the same directory"; fi

# A job that leaves an orphan process.
user=$(sed -n 's/^export SAILOR_CLUSTER_USER=//p' "$first/exports")
as_user() { if [ "$UID" = 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi; }
pid_file=$first/work/orphan.pid
SLURM_CONF=$first/etc/slurm.conf as_user sbatch -D "$first/work" -o /dev/null \
  --wrap "setsid sh -c 'echo \$\$ >$pid_file; exec sleep 1000' & sleep 1000" >/dev/null
for _ in $(seq 100); do [ -s "$pid_file" ] && break; sleep 0.1; done
orphan=$(cat "$pid_file") || fail "the job did not start"
kill -0 "$orphan" || fail "the job's process ended by itself"
SAILOR_CLUSTER_DIR=$first "$here/../cluster.sh" down
! kill -0 "$orphan" 2>/dev/null || fail "a process of the job is left"
[ ! -e "$first" ] || fail "$first is left"
left=$(SAILOR_CLUSTER_DIR=$first bash -c '. "$1/../../etc/dev/cluster/common.sh"; our_pids' -- "$here")
[ -z "$left" ] || fail "processes of the first are left: $left"
[ "$(nodes "$second" | grep -c ' idle$')" = 13 ] || fail "the other cluster was disturbed"
echo "all passed"
