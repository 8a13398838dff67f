#!/bin/bash
# billing_test.sh [--accounts]: the price of a plan is what Slurm bills for its nodes (TRESBillingWeights), whole and shared ones. Without an
# accounting database, what sacct would record is the `billing` of the job's TRES, which slurmctld computes. With --accounts, on a cluster of
# its own, it is what sacct has recorded, and GPUs have weights.
set -euo pipefail
accounts=${1:-}
if [ "$accounts" = --accounts ]; then
  export SAILOR_CLUSTER_DIR=${SAILOR_CLUSTER_DIR:-$(mktemp -u "${TMPDIR:-/tmp}/sailor-billing.XXXXXX")}
  "$(dirname "${BASH_SOURCE[0]}")/../cluster.sh" up --accounts >/dev/null || exit $?
fi
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ -z "$accounts" ] || trap 'leave; "$e2e/../cluster.sh" down' EXIT
export SAILOR_CONFIG=$SAILOR_CLUSTER_DIR/etc/billing.yaml
restore() {
  scontrol update partitionname=fast tresbillingweights= || true
  rm -f "$SAILOR_CONFIG"
}
{ cat "$SAILOR_CLUSTER_DIR/etc/sailor.yaml"; echo 'billing: {usd_per_unit_hour: 0.01}'; } >"$SAILOR_CONFIG"

# billed OPTION...: the billing units of a job in the partition `fast`.
billed() {
  run sbatch -p fast -o /dev/null "$@" --wrap 'sleep 60'
  job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' <<<"$out")
  [ -n "$job" ] || { echo "not submitted: $err" >&2; return 1; }
  wait_until 30 eval 'scontrol show job -o "$job" | grep -q JobState=RUNNING'
  if [ -n "$accounts" ]; then
    wait_until 20 recorded >"$work/billing"
    tail -1 "$work/billing"
  else
    scontrol show job -o "$job" | sed -nE 's/.* (Alloc)?TRES=[^ ]*billing=([0-9]*).*/\2/p'
  fi
  scancel "$job"
}
# What slurmdbd has of the job; it hears of it a moment later.
recorded() { sacct -n -P -X -j "$job" -o AllocTRES | grep -oE 'billing=[0-9]+' | cut -d= -f2; }
# usd OPTION...: what the best plan costs in an hour, in thousandths of a dollar.
usd() {
  run sailor plan tiny.yaml --format json "$@"
  grep -o '"usd_per_hour": [0-9.e+-]*' <<<"$out" | awk 'NR == 1 {printf "%.0f\n", 1000 * $2}'
}
snapshot() { run sailor cluster --format yaml; sed '/^ *- {name: [^a]/d; /^ *- {name: a2/d' <<<"$out"; }

all_weights=(CPU=0.5,Mem=0.64G CPU=1.0)
[ -z "$accounts" ] || all_weights=(CPU=0.5,Mem=0.64G,GRES/gpu=8 GRES/gpu:a100=12,CPU=0.25)
for weights in "${all_weights[@]}"; do
  scontrol update partitionname=fast tresbillingweights=$weights
  whole=$(billed -w a1 --exclusive --gres=gpu:a100:4)
  wait_idle
  quarter=$(billed -w a1 -n1 -c16 --gres=gpu:a100:1)
  wait_idle
  expect "$weights: Slurm bills jobs" test "$whole" -gt 0
  snapshot >shared.yaml
  sed 's/, shared: true//' shared.yaml >whole.yaml
  expect "$weights: a node has the units of a job that takes it" contains "$(cat whole.yaml)" "billing_units: $whole"
  expect "$weights: a plan on a node costs what Slurm bills" equal "$(usd --cluster whole.yaml)" $((10 * whole))
  expect "$weights: on one of its GPUs too" equal "$(usd --cluster whole.yaml --max-gpus A100-40=1)" $((10 * whole))
  expect "$weights: on a GPU of a shared node what Slurm bills for a quarter" \
    equal "$(usd --cluster shared.yaml --max-gpus A100-40=1)" $((10 * quarter))
done
finish
