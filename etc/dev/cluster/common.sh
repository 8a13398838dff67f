# Shared by up.sh and down.sh (sourced, not run): where a throw-away cluster lives and how its processes are recognised.
#
# Everything of one cluster is under $SAILOR_CLUSTER_DIR:
#   etc/      slurm.conf, gres.conf, plugstack.conf, sailor.yaml, catalog.yaml, nodes.txt (name, partition, GRES type, GPUs)
#   run/      pid files; munge/ the private munge key, socket and pid file; state/, spool/, log/, dev/ as their names say
#   database/ the data and socket of mariadbd (--accounts)
#   profiles/ layer and network profiles, writable by the cluster's user; work/ a directory for jobs, writable by everyone

say() { echo "cluster: $*" >&2; }
fail() { say "$*"; exit 1; }

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cluster_dir=${SAILOR_CLUSTER_DIR:-${TMPDIR:-/tmp}/sailor-cluster-$UID}
case $cluster_dir in /*) ;; *) cluster_dir=$PWD/$cluster_dir ;; esac
slurm_conf=$cluster_dir/etc/slurm.conf
# The node of --apart: its network namespace, its address, and the end of its link that the others see.
apart_netns=sailor-apart apart_address=10.213.0.2 apart_link=sailor-apart
[ ! -e "$cluster_dir" ] || { [ -O "$cluster_dir" ] && [ ! -L "$cluster_dir" ]; } || fail "$cluster_dir belongs to somebody else"

# has FILE STRING: does this file of /proc (fields end in NUL) hold the string? False when the process is gone or not ours to read.
has() { grep -qsF -- "$2" "$1"; }

# is_ours PID: was this process started by this cluster (its daemons, job steps and tasks)? The caller's shell is not, even when it
# has SLURM_CONF exported: daemons are recognised by name, everything else must be inside a job.
is_ours() {
  local name
  name=$(cat "/proc/$1/comm" 2>/dev/null) || return 1
  case $name in
    munged) has "/proc/$1/cmdline" "--socket=$cluster_dir/munge/" ;;
    mariadbd) has "/proc/$1/cmdline" "--datadir=$cluster_dir/database/" ;;
    # After `scontrol reconfigure`, daemons of Slurm 24.11 have the names of the files that they executed: slurmd-wlm on Debian.
    slurmctld* | slurmscriptd* | slurmd* | slurmstepd*) has "/proc/$1/environ" "SLURM_CONF=$slurm_conf" ;;
    *) has "/proc/$1/environ" "SLURM_CONF=$slurm_conf" && has "/proc/$1/environ" SLURM_JOB_ID= ;;
  esac
}

# The pids of all processes of this cluster but this script itself.
our_pids() {
  local file pid
  for file in $(grep -lsF -- "$cluster_dir/" /proc/[0-9]*/environ /proc/[0-9]*/cmdline); do
    pid=${file#/proc/}
    pid=${pid%/*}
    if [ "$pid" != "$$" ] && [ "$pid" != "$BASHPID" ] && is_ours "$pid"; then echo "$pid"; fi
  done | sort -un
}

# The control groups (version 1) that Slurm makes for the nodes of a throw-away cluster.
cgroups_of_nodes() { find /sys/fs/cgroup -maxdepth 2 -type d -name 'slurm_[atv][0-9]*' 2>/dev/null; }
cgroup_pids() { cgroups_of_nodes | while read -r group; do find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null; done; }
remove_cgroups() { cgroups_of_nodes | while read -r group; do find "$group" -depth -type d -exec rmdir {} + 2>/dev/null; done; true; }
cgroups_usable() {
  local name=sailor-try-$$ controller
  for controller in devices memory freezer; do
    mkdir "/sys/fs/cgroup/$controller/$name" 2>/dev/null && rmdir "/sys/fs/cgroup/$controller/$name" || return 1
  done
}

# end_processes SECONDS PID...: SIGTERM to all, then SIGKILL to those that are still there after SECONDS.
end_processes() {
  local tries=$(($1 * 20)) pid
  shift
  [ $# -gt 0 ] || return 0
  kill "$@" 2>/dev/null || true
  for pid; do
    while [ $tries -gt 0 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.05; tries=$((tries - 1)); done
  done
  for pid; do if is_ours "$pid"; then kill -9 "$pid" 2>/dev/null || true; fi; done
}

# stop SECONDS PID_FILE...: ends the daemons of the pid files, each only after checking that the pid is still that daemon of this cluster.
stop() {
  local limit=$1 file pids=()
  shift
  for file; do
    if [ -s "$file" ] && is_ours "$(cat "$file")"; then pids+=("$(cat "$file")"); fi
  done
  end_processes "$limit" "${pids[@]}"
}

# The ones that others need to take leave go after them.
stop_daemons() {
  stop 10 "$cluster_dir"/run/slurmctld.pid "$cluster_dir"/run/slurmd.*.pid
  stop 5 "$cluster_dir/run/slurmdbd.pid"
  stop 5 "$cluster_dir/run/mariadbd.pid" "$cluster_dir/munge/munged.pid"
}
