#!/bin/bash
# Slurm's network topology: leaf switches are part of the snapshot, and a plan's nodes are neighbours. On a separate cluster.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-topology.XXXXXX")
export SAILOR_CLUSTER_DIR
trap '"$here/../cluster.sh" down' EXIT
"$here/../cluster.sh" up --nodes 12 --switches 2 >/dev/null
. "$here/lib.sh"
leave_cluster() { leave; "$here/../cluster.sh" down; }
trap leave_cluster EXIT

run sailor cluster --format yaml
expect "the snapshot has the switches" equal "$(grep -c 'name: a[13],.* switch: s1' <<<"$out")" 2
expect "of all nodes" equal "$(grep -c 'switch: s[12]' <<<"$out")" 12
plans() { # WHAT NODES OPTION...
  local what=$1 wanted=$2
  shift 2
  run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml "$@" --sailor-dry-run body.sh
  expect "$what" equal "$rc $(nodes_of_command "$out")" "0 $wanted"
}
only_fast=V100-16=0,T4-16=0
plans "two nodes below one switch" "a1 a3" --sailor-max-gpus=A100-40=8,$only_fast
plans "below the other, when a node of the first is not to be had" "a2 a4" --sailor-max-gpus=A100-40=8,$only_fast -x a3
run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-max-gpus=A100-40=8,$only_fast -o /dev/null body.sh
expect "it starts" submitted
expect "there" equal "$(nodes_of_job "$job")" "a1 a3"
touch go
finish
