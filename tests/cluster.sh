#!/bin/bash
# The throw-away Slurm cluster: all on this machine, in one private directory, without systemd. Implemented in etc/dev/cluster/.
usage() {
  cat <<'TEXT'
usage: tests/cluster.sh up [--nodes N] [--user NAME] [--umbrella] [--switches N] [--apart NODE]
                           [--strict] [--accounts] [--build DIR]
       tests/cluster.sh fill FILE
       tests/cluster.sh down
       tests/cluster.sh env

up    starts munge, slurmctld and one slurmd per node, waits until all nodes are idle, and prints the exports to use them:
          eval "$(tests/cluster.sh up)"
      --nodes N     nodes in three partitions: fast (4 GPUs each), medium (4), small (2). Default 6
      --user NAME   the ordinary user who submits jobs; created as a system user if missing.
                    Default: sailor if there is such a user, else nobody
      --umbrella    adds a partition "all" over all nodes, and sets it in the site config
      --switches N  N leaf switches below one (topology/tree); the nodes of a partition are assigned to
                    them in turn: with two switches, the first and third of four nodes are on s1. Default: no topology
      --apart NODE  puts this node into its own network namespace, behind the device sailor-apart: `ip link set
                    sailor-apart down` disconnects it. Needs root, and a caller in its own network namespace
                    (unshare -n -m tests/cluster.sh ...)
      --strict      jobs get only the devices and the memory that they asked for (task/cgroup with ConstrainDevices and
                    ConstrainRAMSpace; DefMemPerCPU=1), a1 has MIG slices beside its GPUs, v1 GPUs of two types. Needs root and
                    control groups of version 1; one such cluster at a time
      --accounts    slurmdbd with a private MariaDB, enforced limits of associations and QOS, multifactor priority, preemption by
                    QOS: accounts physics and biology with the user, QOS normal, limited (6 GPUs, 2 jobs, 1 hour per user)
                    and low (preemptible). Exit status 77 if slurmdbd or mariadb-server are not installed
                    or do not work together
      --build DIR   directory of spank_sailor.so and the programs. Default: build/ of this repository
fill  submits the jobs of others in FILE at their times, and returns after the last one. FILE is printed by
          busy_workload --jobs TRACE.csv --nodes $SAILOR_CLUSTER_DIR/etc/nodes.txt --load 0.95 --minutes 30
      which draws them from a measured trace, with time compressed. The log of ended jobs is log/jobs.log
down  ends the jobs and daemons, and removes the directory
env   prints the exports of a running cluster again

SAILOR_CLUSTER_DIR is the directory (default ${TMPDIR:-/tmp}/sailor-cluster-$UID). Every cluster needs its own.
TEXT
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../etc/dev/cluster" && pwd) || exit 1
verb=${1:-}
[ $# -gt 0 ] && shift
for argument; do case $argument in -h | --help) usage; exit 0 ;; esac; done
case $verb in
  up | fill | down) exec "$here/$verb.sh" "$@" ;;
  env) . "$here/common.sh"; exec cat "$cluster_dir/exports" ;;
  -h | --help | help) usage ;;
  *) usage >&2; exit 2 ;;
esac
