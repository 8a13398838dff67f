#!/bin/bash
# Parts of nodes, on a cluster that gives a job only the devices and the memory that it asked for (cluster.sh --strict): jobs train with
# hardly any default memory, the steps of an umbrella partition have their GPUs and no others, shared nodes count with what is left, GPU
# types side by side and MIG slices can be planned, the default partition is preferred.
set -euo pipefail
export SAILOR_CLUSTER_DIR=${SAILOR_CLUSTER_DIR:-$(mktemp -u "${TMPDIR:-/tmp}/sailor-strict.XXXXXX")}
"$(dirname "${BASH_SOURCE[0]}")/../cluster.sh" up --strict --umbrella >/dev/null || exit 77
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"
trap 'leave; "$e2e/../cluster.sh" down' EXIT

job_runs() { scontrol show job -o "$1" | grep -q JobState=RUNNING; }
state_of() { scontrol show job -o "$1" | head -1 | grep -o 'JobState=[A-Z_]*' | cut -d= -f2; }
# NODE GRES of a running job, a line each: "a2 gpu:a100:2(IDX:1-2)".
gres_of_job() { scontrol show job -d -o "$1" | grep -oE ' Nodes=[^ ]* CPU_IDs=[^ ]* Mem=[^ ]* GRES=[^ ]*' | sed -E 's/ Nodes=([^ ]*) .* GRES=/\1 /'; }
# hold NODE OPTION...: another job on a part of the node.
hold() {
  run sbatch -p all -w "$1" -n1 -o /dev/null "${@:2}" --wrap 'sleep 600'
  held=$(job_submitted)
  wait_until 20 job_runs "$held"
}
free_all() { scancel -u "$SAILOR_CLUSTER_USER"; wait_idle; }
planned() { run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml "$@"; }
dry() { planned --sailor-dry-run "$@" body.sh; }
# devices_of PID NODE: the GPUs of the node that a process in the control group of PID may open. None of them exists: the kernel refuses
# first, where it refuses.
devices_of() {
  local group device answer seen=
  group=/sys/fs/cgroup/devices$(awk -F: '$2 == "devices" { print $3 }' "/proc/$1/cgroup")
  for device in "$SAILOR_CLUSTER_DIR/dev/$2"/gpu*; do
    answer=$(sh -c 'echo $$ >"$1/cgroup.procs"; exec head -c1 "$2"' sh "$group" "$device" 2>&1) || true
    [[ $answer != *'No such device'* ]] || seen+=${seen:+ }${device##*/gpu}
  done
  echo "$seen"
}
variable_of() { tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^$2=//p"; }
ranks_on() { local pid; for pid in $(pids_of sailor-rank); do [ "$(variable_of "$pid" SLURMD_NODENAME)" != "$1" ] || echo "$pid"; done; }

setup_training 100000
run sbatch -p all -w a2 -n1 -o /dev/null --wrap 'head -c 200M /dev/zero | tail -c 100M | wc -c'
plain=$(job_submitted)
expect "without a request a job has hardly any memory" wait_until 30 eval '[ "$(state_of "$plain")" = OUT_OF_MEMORY ]'

# Over two partitions, an ordinary job of the umbrella partition: three ranks on a2, one on v2. Other jobs have a part of both nodes.
hold a2 -c8 --mem=1000 --gres=gpu:a100:1
hold v2 -c8 --mem=1000 --gres=gpu:v100:2
sed -i 's/"a1"/"a2"/; s/"gpus": \[3\]/"gpus": [2]/' plan.json
expect "submitted" start_training
expect "it trains" wait_until 90 steps_done 3
expect "in one partition" equal "$(partitions_of_job "$job")" all
expect "it has a GPU for each rank, of those that are free" equal "$(gres_of_job "$job" | paste -sd' ')" \
  "a2 gpu:a100:3(IDX:1-3) v2 gpu:v100:1(IDX:2)"
expect "and a share of the processors" equal "$(scontrol show job -d -o "$job" | grep -o 'NumCPUs=[0-9]*')" NumCPUs=64
for node in a2 v2; do
  ranks=$(ranks_on $node)
  wanted='1 2 3' count=3
  [ $node = a2 ] || wanted=2 count=1
  expect "$node: $count ranks" equal "$(wc -w <<<"$ranks")" $count
  for pid in $ranks; do expect "$node: rank $pid may open its node's GPUs and no others" equal "$(devices_of "$pid" $node)" "$wanted"; done
done
expect "the ranks see them" equal "$(variable_of "$(ranks_on v2)" CUDA_VISIBLE_DEVICES)" 0
memory=$(cat "/sys/fs/cgroup/memory$(awk -F: '$2 == "memory" { print $3 }' "/proc/$(ranks_on v2)/cgroup")/memory.usage_in_bytes")
limit=$(cat "/sys/fs/cgroup/memory/slurm_v2/uid_$(id -u "$SAILOR_CLUSTER_USER")/job_$job/memory.limit_in_bytes")
echo "memory of the step on v2: $((memory >> 20)) MiB of $((limit >> 20)) MiB"
expect "its memory is limited to about what a rank needs" test $((limit >> 20)) -lt 2048
expect "what is left of a2 is nothing" contains "$(user sailor cluster --format yaml)" "a2: 4 of 4 GPUs in use"
expect "other jobs have the rest of v2" hold v2 -c1 --mem=100 --gres=gpu:v100:1
free_all

# A job of two GPUs takes two.
planned --sailor-max-gpus=A100-40=2,V100-16=0,T4-16=0,A100-1g.10=0 -w a2 -o /dev/null body.sh
expect "two GPUs: it starts" submitted
expect "it has two of four" equal "$(gres_of_job "$job")" "a2 gpu:a100:2(IDX:0-1)"
dry -w a2
expect "the next job gets the others" contains "$out" "--nodelist=a2 --nodes=1 --ntasks=2 --ntasks-per-node=2 --cpus-per-task=16"
dry -w a2 --exclusive --sailor-wait=none
expect "one that wants whole nodes waits for them" equal "$rc" 3
contains "$err" "is busy" || not_ok "and says so"
free_all
hold a2 -n1 -c1 --mem=62500
dry -w a2
expect "room for the memory of one rank: one rank" contains "$out" "--ntasks=1 "
free_all
hold a2 -n1 -c62 --mem=100
dry -w a2
expect "two processors: two ranks" contains "$out" "--ntasks=2 --ntasks-per-node=2 --cpus-per-task=1 "
dry -w a2 -c3 --sailor-wait=none
expect "and none with three each" equal "$rc" 3
free_all

# MIG slices, and GPUs of two types side by side.
planned --sailor-max-gpus=A100-40=0,V100-16=0,T4-16=0 -o /dev/null body.sh
expect "MIG slices: it starts" submitted
expect "on them" equal "$(gres_of_job "$job")" "a1 gpu:a100_1g.10gb:4(IDX:2-5)"
dry -w a1
expect "the GPUs beside them are free" contains "$out" "--gres=gpu:a100:2"
free_all
planned -w v1 -o /dev/null body.sh
expect "two types on a node: it starts" submitted
expect "on both" equal "$(gres_of_job "$job")" "v1 gpu:t4:2(IDX:2-3),gpu:v100:2(IDX:0-1)"
expect "as one component" equal "$(scontrol show job -o "$job" | grep -c HetJobIdSet || true)" 0
free_all
sed -i 's/"node": "a2", "gpus": \[0, 1\]/"node": "v2", "gpus": [1, 2]/; s/"gpu_type": "A100-40"\(.*"node": "v2"\)/"gpu_type": "V100-16"\1/
  s/"gpu_type": "A100-40"\(.*\)"node": "a2", "gpus": \[2\]/"gpu_type": "T4-16"\1"node": "v1", "gpus": [3]/
  s/"gpu_type": "V100-16"\(.*\)"node": "v2", "gpus": \[0\]/"gpu_type": "V100-16"\1"node": "v1", "gpus": [1]/' plan.json
expect "ranks on two types of a node: submitted" start_training
expect "they train" wait_until 90 steps_done 3
expect "each has its type" equal "$(gres_of_job "$job" | sort | paste -sd' ')" "v1 gpu:t4:1(IDX:2),gpu:v100:1(IDX:0) v2 gpu:v100:2(IDX:0-1)"
ranks=$(ranks_on v1)
expect "and may open them" equal "$(devices_of "${ranks%%$'\n'*}" v1)" "0 2"
free_all

# Jobs that start later, and a full cluster. What they need is free then, and nothing else is taken.
run sbatch -p all -w a2 -n1 -c8 --mem=1000 --gres=gpu:a100:3 -o /dev/null --wrap 'sleep 15'
first=$(job_submitted)
wait_until 20 job_runs "$first"
since=$(date +%s)
planned -w a2 --sailor-max-gpus=A100-40=1 --dependency=afterok:"$first" --begin=now+5 -o /dev/null body.sh
expect "--begin and --dependency: submitted" equal "$rc" 0
contains "$err" "starts the job later" || not_ok "and said"
sleep 7
expect "it waits for the other job" equal "$(squeue -h -j "$(job_submitted)" -o '%T %r')" "PENDING Dependency"
expect "then it starts" submitted
expect "after it" test "$(date +%s)" -ge $((since + 10))
expect "with one GPU" contains "$(gres_of_job "$job")" "a2 gpu:a100:1("
free_all
run sbatch -p all -w a2,v2 -N2 --exclusive -t 1 -o /dev/null --wrap 'sleep 50'
wait_until 20 job_runs "$(job_submitted)"
planned -w a2,v2 --sailor-wait=none -t 5 body.sh
expect "full: no plan without waiting" equal "$rc" 3
planned -w a2,v2 --sailor-deadline=now+10s -t 5 body.sh
expect "full: none ends by a near deadline" equal "$rc" 3
planned -w a2,v2 --deadline="$(date -d '10 minutes' +%FT%T)" -t 5 -o /dev/null body.sh
expect "full, with Slurm's own deadline: it waits" contains "$err" "starts: wait "
expect "and starts" submitted
free_all

# Partitions as sbatch chooses them: the default one first, and others when they are requested.
scontrol create partitionname=main nodes=a[1-2],v2 default=yes maxtime=60 state=up
dry -w a2
expect "the default partition" contains "$out" "--partition=main "
dry -w a2 --sailor-partitions=fast,medium
expect "others, if they are requested" contains "$out" "--partition=fast "
dry -w a2 -t 90
expect "others, if it is too short" contains "$out" "--partition=fast "
scontrol delete partitionname=main
scontrol update partitionname=fast default=yes
finish
