#!/bin/bash
# up.sh [--nodes N] [--user NAME] [--umbrella] [--switches N] [--apart NODE] [--strict] [--accounts] [--build DIR]: starts a throw-away Slurm
# cluster on this machine. See tests/cluster.sh --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"
. "$here/accounts.sh"

node_count=6
user=
umbrella=no
switches=0
apart=
strict=no
accounts=no
build=${SAILOR_BUILD_DIR:-$repository/build}
while [ $# -gt 0 ]; do
  case $1 in
    --nodes) node_count=${2:?--nodes needs a number}; shift ;;
    --nodes=*) node_count=${1#*=} ;;
    --user) user=${2:?--user needs a name}; shift ;;
    --user=*) user=${1#*=} ;;
    --build) build=${2:?--build needs a directory}; shift ;;
    --build=*) build=${1#*=} ;;
    --umbrella) umbrella=yes ;;
    --strict) strict=yes ;;
    --accounts) accounts=yes ;;
    --switches) switches=${2:?--switches needs a number}; shift ;;
    --switches=*) switches=${1#*=} ;;
    --apart) apart=${2:?--apart needs a node}; shift ;;
    --apart=*) apart=${1#*=} ;;
    *) say "unknown argument $1 (tests/cluster.sh --help)"; exit 2 ;;
  esac
  shift
done
case $node_count in '' | *[!0-9]* | 0) say "--nodes $node_count: not a number of nodes"; exit 2 ;; esac
case $switches in '' | *[!0-9]*) say "--switches $switches: not a number of switches"; exit 2 ;; esac
[ ${#cluster_dir} -le 70 ] || fail "$cluster_dir: too long for Unix sockets; set SAILOR_CLUSTER_DIR to a shorter path"
for program in munged slurmctld slurmd sinfo; do
  command -v $program >/dev/null || PATH=$PATH:/usr/sbin:/sbin
  command -v $program >/dev/null || fail "$program is not installed (apt-get install munge slurmctld slurmd slurm-client)"
done
[ "$accounts" = no ] || require_accounts_programs
[ -z "$(our_pids)" ] || fail "a cluster is already up in $cluster_dir (tests/cluster.sh down ends it)"

# A machine that cannot look up its own name without DNS waits five seconds for every connection that Slurm and mpirun make. Debian's
# installer writes this line; a bare root has not got it.
host=$(hostname -s 2>/dev/null || hostname)
exec {machine}</etc
flock $machine   # clusters that start at the same time prepare the machine one after the other
if [ "$UID" = 0 ] && ! grep -qsw -- "$host" /etc/hosts; then
  say "adding $host to /etc/hosts"
  printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n' "$host" >>/etc/hosts
fi

# Slurm names the control groups of a node after it: one strict cluster at a time.
if [ "$strict" = yes ]; then
  [ "$UID" = 0 ] || fail "--strict: control groups need root"
  cgroups_usable || fail "--strict: this machine has no control groups for devices and memory that can be changed"
  [ -z "$(cgroup_pids)" ] || fail "--strict: another strict cluster is up on this machine"
  remove_cgroups
fi

# Who runs the daemons, and which ordinary user is meant to submit.
slurmd_user=$(id -un)
slurm_user=$slurmd_user
if [ "$UID" = 0 ]; then
  getent passwd slurm >/dev/null && slurm_user=slurm
  if [ -z "$user" ]; then user=nobody; getent passwd sailor >/dev/null && user=sailor; fi
  if ! getent passwd "$user" >/dev/null; then
    say "creating the system user $user"
    useradd --system --create-home --shell /bin/bash "$user"
  fi
else
  user=${user:-$slurmd_user}
fi
exec {machine}<&-

if [ -e "$cluster_dir" ]; then
  [ -f "$cluster_dir/.sailor-cluster" ] || fail "$cluster_dir exists and is not a throw-away cluster"
  rm -rf -- "$cluster_dir"
fi
umask 022
mkdir -p "$cluster_dir"/{etc,run,log,state,dev,spool,tmp,munge,profiles,work}
: >"$cluster_dir/.sailor-cluster"
[ "$strict" = no ] || : >"$cluster_dir/.strict"
chmod 1777 "$cluster_dir/work"
for account in "$slurm_user" "$user"; do
  if [ "$UID" = 0 ] && ! runuser -u "$account" -- test -x "$cluster_dir/etc"; then
    rm -rf -- "$cluster_dir"
    fail "user $account cannot enter $cluster_dir: set SAILOR_CLUSTER_DIR to a directory below one that everybody can enter, as /tmp"
  fi
done
as_user() { if [ "$UID" = 0 ]; then runuser -u "$user" -- "$@"; else "$@"; fi; }
# A build that the user cannot reach (a checkout in /root) is copied.
if [ -d "$build/bin" ] && ! as_user test -x "$build/bin"; then
  mkdir -p "$cluster_dir/build/lib"
  cp -r "$build/bin" "$cluster_dir/build/"
  [ ! -f "$build/lib/spank_sailor.so" ] || cp "$build"/lib/{spank_sailor,sailor_planner}.so "$cluster_dir/build/lib/"
  chmod -R a+rX "$cluster_dir/build"
  build=$cluster_dir/build
fi
plugin=
if [ -f "$build/lib/spank_sailor.so" ]; then plugin=$build/lib/spank_sailor.so
else say "$build/lib/spank_sailor.so is not built: this cluster has no plugin"; fi
# A node in a network namespace of its own: what is between it and the others is one link, which can be cut.
address=127.0.0.1
if [ -n "$apart" ]; then
  [ "$UID" = 0 ] || fail "--apart: network namespaces need root"
  [ ! -e /sys/class/net/$apart_link ] || fail "--apart: there is a device $apart_link: start this in a network namespace of its own (unshare -n -m)"
  ip link set lo up
  ip netns add "$apart_netns"
  ip link add $apart_link type veth peer name eth0 netns "$apart_netns"
  address=10.213.0.1
  ip address add $address/30 dev $apart_link
  ip link set $apart_link up
  ip -n "$apart_netns" link set lo up
  ip -n "$apart_netns" address add $apart_address/30 dev eth0
  ip -n "$apart_netns" link set eth0 up
fi
export address apart apart_address
export cluster_dir node_count slurm_user slurmd_user umbrella switches strict accounts plugin SAILOR_CLUSTER_DIR="$cluster_dir"
export SLURM_CONF=$slurm_conf

# A block of unused ports, chosen at random below the ephemeral range.
port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
choose_ports() {
  local try port
  for try in $(seq 50); do
    base_port=$((10000 + RANDOM % 20000))
    for ((port = base_port; port <= base_port + node_count + 1; port++)); do port_is_free $port || continue 2; done
    dbd_port=$((base_port + node_count + 1))
    export base_port dbd_port
    return 0
  done
  fail "no block of $((node_count + 2)) free ports between 10000 and 30000"
}

# Daemons must not inherit the caller's standard output (a pipe would never close) nor its job.
start() {
  env -u SLURM_JOB_ID -u SLURM_JOBID "$@" </dev/null >>"$cluster_dir/log/start.log" 2>&1 9>&- ||
    { say "$1 did not start:"; tail -5 "$cluster_dir/log/start.log" >&2; return 1; }
}

start_daemons() {
  "$here/make_config.sh"
  if [ "$UID" = 0 ]; then
    chown "$slurm_user" "$cluster_dir"/{state,log,run}
    chown "$user" "$cluster_dir/profiles"
  fi
  (umask 077; head -c 128 /dev/urandom >"$cluster_dir/munge/munge.key")
  chmod 0755 "$cluster_dir/munge"
  start munged --force --num-threads=2 --key-file="$cluster_dir/munge/munge.key" \
    --socket="$cluster_dir/munge/munge.socket" --pid-file="$cluster_dir/munge/munged.pid" \
    --log-file="$cluster_dir/munge/munged.log" --seed-file="$cluster_dir/munge/munged.seed" --origin=127.0.0.1 || return 1
  if [ "$accounts" = yes ]; then start_database && start_slurmdbd || return 1; fi
  start slurmctld -i || return 1
  while read -r name _; do
    if [ "$name" = "$apart" ]; then
      start nsenter --net="/run/netns/$apart_netns" slurmd -N "$name" || return 1
    else
      start slurmd -N "$name" || return 1
    fi
  done <"$cluster_dir/etc/nodes.txt"
}

wait_until_idle() {
  local deadline=$((SECONDS + 60)) idle=0
  while [ $SECONDS -lt $deadline ]; do
    idle=$(sinfo -h -N -o '%N %T' 2>/dev/null | sort -u | grep -c ' idle$' || true)
    [ "$idle" = "$node_count" ] && return 0
    grep -q 'Address already in use' "$cluster_dir"/log/*.log && return 1
    sleep 0.1
  done
  say "only $idle of $node_count nodes are idle after 60 s (logs: $cluster_dir/log)"
  return 1
}

trap 'stop_daemons; exit 143' INT TERM
up=no
for attempt in 1 2 3; do
  choose_ports
  if start_daemons && wait_until_idle && { [ "$accounts" = no ] || make_accounts; }; then up=yes; break; fi
  say "attempt $attempt failed"
  stop_daemons
  rm -rf "$cluster_dir"/{run,state,spool,munge,database}/*
  mkdir -p "$cluster_dir"/log/attempt-$attempt
  mv "$cluster_dir"/log/*.log "$cluster_dir"/log/attempt-$attempt/ 2>/dev/null || true
done
[ $up = yes ] || fail "the cluster did not start; logs are in $cluster_dir/log"

say "$node_count nodes idle, submit as user $user"
quote() { printf "export %s=%q\n" "$1" "$2"; }
{
  quote SAILOR_CLUSTER_DIR "$cluster_dir"
  quote SAILOR_CLUSTER_USER "$user"
  quote SLURM_CONF "$slurm_conf"
  quote SAILOR_CONFIG "$cluster_dir/etc/sailor.yaml"
  # The ranks of nodes that share a host do not find each other with Open MPI 6.
  case $(mpirun --version 2>/dev/null || true) in *'(Open MPI) 6.'*) quote SAILOR_MPIRUN none ;; esac
  if [ -d "$build/bin" ]; then printf 'export PATH=%q:$PATH\n' "$build/bin"; fi
} | tee "$cluster_dir/exports"
