#!/bin/bash
# Training in the foreground: `salloc --sailor-... ./job.yaml`, and `sailor run` in an allocation that salloc planned.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

setup_training 8
chmod a+rx job.yaml
# trains WHAT: the last command trained to the end, on the planned nodes, and left no processes.
trains() {
  local directory
  directory=$(ls -dv sailor-[0-9]* | tail -1)
  expect "$1: exit 0" equal "$rc" 0
  expect "$1: a line per step" equal "$(grep -c '^step ' <<<"$out")" 8
  expect "$1: it ended well" equal "$(json "$directory/summary.json" status)" finished
  expect "$1: on the planned nodes" equal "$(nodes_of_plan "$directory/plan.json")" "$2"
  expect "$1: nothing is left" wait_until 10 no_training_processes
  wait_idle
}
run salloc --sailor-plan=plan.json --sailor-objective=throughput ./job.yaml
trains "salloc ./job.yaml, a given plan over two partitions" "a1 a2 v2"
run env SAILOR_MPIRUN=none salloc --sailor-plan=plan.json --sailor-objective=throughput ./job.yaml
trains "the same without mpirun" "a1 a2 v2"
run salloc --sailor-objective=throughput --sailor-max-gpus=A100-40=2,V100-16=0,T4-16=0 ./job.yaml
trains "salloc ./job.yaml" a1
run salloc --sailor-objective=throughput --sailor-max-gpus=A100-40=0,V100-16=2,T4-16=0 --sailor-job=job.yaml sailor run job.yaml
trains "sailor run in an allocation" v1
finish
