#!/bin/bash
# The price of a plan is what Slurm bills for its nodes (TRESBillingWeights), whole and shared ones. The throw-away cluster has no accounting
# database: what sacct would record is the `billing` of the job's TRES, which slurmctld computes without one.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

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
  wait_until 30 eval 'scontrol show job -o "$job" | grep -q JobState=RUNNING'
  scontrol show job -o "$job" | sed -nE 's/.* (Alloc)?TRES=[^ ]*billing=([0-9]*).*/\2/p'
  scancel "$job"
}
# usd OPTION...: what the best plan costs in an hour, in thousandths of a dollar.
usd() {
  run sailor plan tiny.yaml --format json "$@"
  grep -o '"usd_per_hour": [0-9.e+-]*' <<<"$out" | awk 'NR == 1 {printf "%.0f\n", 1000 * $2}'
}
snapshot() { run sailor cluster --format yaml; sed '/^ *- {name: [^a]/d; /^ *- {name: a2/d' <<<"$out"; }

# Weights of GRES need the database; tests/unit/spank_plugin/billing_test.cpp has them.
for weights in CPU=0.5,Mem=0.64G CPU=1.0; do
  scontrol update partitionname=fast tresbillingweights=$weights
  whole=$(billed -w a1 --exclusive --gres=gpu:a100:4)
  wait_idle
  quarter=$(billed -w a1 -n1 -c16 --gres=gpu:a100:1)
  wait_idle
  expect "$weights: Slurm bills jobs" test "$whole" -gt 0
  snapshot >whole.yaml
  expect "$weights: a node has the units of a job that takes it" contains "$(cat whole.yaml)" "billing_units: $whole"
  expect "$weights: a plan on a node costs what Slurm bills" equal "$(usd --cluster whole.yaml)" $((10 * whole))
  expect "$weights: on one of its GPUs too" equal "$(usd --cluster whole.yaml --max-gpus A100-40=1)" $((10 * whole))
  sed 's/billing_units/shared: true, &/' whole.yaml >shared.yaml
  expect "$weights: on a GPU of a shared node what Slurm bills for a quarter" \
    equal "$(usd --cluster shared.yaml --max-gpus A100-40=1)" $((10 * quarter))
done
finish
