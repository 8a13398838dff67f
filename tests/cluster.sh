#!/bin/bash
# The throw-away Slurm cluster: everything on this machine, in one private directory, no systemd. The work is in etc/dev/cluster/.
usage() {
  cat <<'TEXT'
usage: tests/cluster.sh up [--nodes N] [--user NAME] [--umbrella] [--switches N] [--apart NODE] [--build DIR]
       tests/cluster.sh down
       tests/cluster.sh env

up    starts munge, slurmctld and one slurmd per node, waits until all nodes are idle, and prints the exports to use them:
          eval "$(tests/cluster.sh up)"
      --nodes N     nodes in three partitions: fast (4 GPUs each), medium (4), small (2). Default 6
      --user NAME   the ordinary user who is meant to submit; created as a system user if it is missing.
                    Default: sailor if there is such a user, else nobody
      --umbrella    adds a partition "all" over all nodes, and names it in the site config
      --switches N  a network of N leaf switches below one (topology/tree); the nodes of a partition are dealt out to
                    them in turn: of four, the first and third are on s1 when there are two. Default: no topology
      --apart NODE  this node is in a network namespace of its own, behind the device sailor-apart: `ip link set
                    sailor-apart down` cuts it off. Needs root, and a caller in a network namespace that is its own
                    (unshare -n -m tests/cluster.sh ...)
      --build DIR   where spank_sailor.so and the programs are. Default: build/ of this repository
down  ends its jobs and its daemons, and removes its directory
env   prints the exports of a running cluster again

SAILOR_CLUSTER_DIR is the directory (default ${TMPDIR:-/tmp}/sailor-cluster-$UID); several clusters need several directories.
TEXT
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../etc/dev/cluster" && pwd) || exit 1
verb=${1:-}
[ $# -gt 0 ] && shift
for argument; do case $argument in -h | --help) usage; exit 0 ;; esac; done
case $verb in
  up | down) exec "$here/$verb.sh" "$@" ;;
  env) . "$here/common.sh"; exec cat "$cluster_dir/exports" ;;
  -h | --help | help) usage ;;
  *) usage >&2; exit 2 ;;
esac
