#!/bin/bash
# Limits of QOS, associations and partitions (cluster.sh --accounts): a plan is within them, whatever is in use already, and Slurm starts it;
# where they leave no plan, the refusal names the limit and whose it is. Plain jobs are not concerned.
set -euo pipefail
export SAILOR_CLUSTER_DIR=${SAILOR_CLUSTER_DIR:-$(mktemp -u "${TMPDIR:-/tmp}/sailor-accounts.XXXXXX")}
"$(dirname "${BASH_SOURCE[0]}")/../cluster.sh" up --accounts >/dev/null || exit $?
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'leave; "$e2e/../cluster.sh" down' EXIT

planned() { run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml "$@"; }
dry() { planned --sailor-dry-run "$@" body.sh; }
# plans WHAT GPUS OPTION...: a dry run that plans this many.
plans() {
  local what=$1 wanted=$2
  dry "${@:3}"
  expect "$what: $wanted GPUs" equal "$rc $(gpus_of_command "$out")" "0 $wanted"
}
refused() { # WHAT TEXT OPTION...
  local what=$1 text=$2
  dry "${@:3}"
  expect "$what: exit 3" equal $rc 3
  expect "$what: one line" one_error "$err"
  expect "$what: says $text" contains "$err" "$text"
}
# limit WHAT... -- TEXT: changes a record, and waits until slurmctld shows TEXT.
limit() {
  local change=()
  while [ "$1" != -- ]; do change+=("$1"); shift; done
  sacctmgr -i modify "${change[@]}" >/dev/null
  wait_until 20 known "$2" || not_ok "slurmctld does not know: ${change[*]}"
}
known() { scontrol -o show assoc_mgr | grep -q -- "$1"; }
job_runs() { scontrol show job -o "$1" | grep -q JobState=RUNNING; }
# hold OPTION...: another job of the user.
hold() {
  run sbatch -n1 -o /dev/null "$@" --wrap 'sleep 600'
  held=$(sed -n 's/^Submitted batch job //p' <<<"$out")
  wait_until 20 job_runs "$held"
}
free_all() { scancel -u "$SAILOR_CLUSTER_USER"; wait_idle; }
queries() { requests REQUEST_ASSOC_MGR_INFO; } # for accounts

# QOS: 6 GPUs per user, what runs included.
plans "no limit" 16
run sailor plan tiny.yaml -o large.json
plans "the QOS of the job" 6 --qos=limited
planned --qos=limited -o /dev/null body.sh
expect "a plan within the limits starts" submitted
expect "with all that the user may have" contains "$(scontrol -o show assoc_mgr qos=limited flags=qos)" "gres/gpu=6(6)"
refused "all in use" "QOS limited allows 6 GPUs per user, 6 are in use: at most 0" --qos=limited
plans "which do not count for a job that waits for them" 6 --qos=limited --sailor-wait=nodes
dry --qos=normal
expect "nor under another QOS" test "$(gpus_of_command "$out")" -gt 6
run env "SAILOR_CONTINUES={\"job\": \"$job\", \"spec\": \"\", \"run_directory\": \"$PWD\"}" \
  sbatch --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-dry-run --qos=limited body.sh
expect "nor for the job that continues it" equal "$rc $(gpus_of_command "$out")" "0 6"
release
hold -p fast -w a1 --gres=gpu:4 --qos=limited
plans "some in use" 2 --qos=limited
planned --qos=limited -o /dev/null body.sh
expect "beside another job it starts" submitted
free_all
hold -p fast -w a1 --gres=gpu:1 --qos=limited
hold -p fast -w a1 --gres=gpu:1 --qos=limited
plans "as many jobs as may run" 4 --qos=limited
expect "it is noted" contains "$err" "note: QOS limited allows 2 jobs per user, 2 are running: the job waits until one has ended"
free_all
refused "a plan of a file" "16 GPUs are needed: QOS limited allows 6 GPUs per user" --qos=limited --sailor-plan=large.json
refused "a time limit that is too long" "QOS limited allows jobs of 60 minutes at most" --qos=limited -t 61
plans "one that is not" 6 --qos=limited -t 60

# Associations and the accounts above them.
limit user "$SAILOR_CLUSTER_USER" where account=physics set maxtresperjob=gres/gpu=3 -- MaxTRESPJ=gres/gpu=3
plans "the default account" 3
plans "another account" 16 --account=biology
run sailor plan tiny.yaml --format json
expect "the command line knows it too" contains "$out" '"gpus": 3'
run sailor cluster --format yaml
expect "the snapshot has it" contains "$out" "- {gpus: 3, reason: \"account physics for user $SAILOR_CLUSTER_USER allows 3 GPUs per job\"}"
run sailor cluster --format table
expect "and the table" contains "$out" "limit: account physics for user $SAILOR_CLUSTER_USER allows 3 GPUs per job"
limit user "$SAILOR_CLUSTER_USER" where account=physics set maxtresperjob=gres/gpu=-1 -- 'UserName=.*MaxTRESPJ= '
limit account physics set grptres=gres/gpu=5,gres/gpu:a100=3 -- 'gres/gpu:a100=3('
dry
expect "a type of the account" contains "$out" "sailor: 3 A100-40 + 2 V100-16"
hold -p fast -w a1 --gres=gpu:2
dry
expect "some of it in use" contains "$out" "sailor: 1 A100-40 + 2 V100-16"
planned -o /dev/null body.sh
expect "which Slurm starts" submitted
# Slurm 26.05 leaves the component of the other type out of gres/gpu; its count is what it enforces.
case $(scontrol -o show assoc_mgr accounts=physics flags=assoc) in
  *'gres/gpu=5(3)'*) plans "as much as Slurm leaves" 2 ;;
  *) refused "nothing left" "account physics allows 5 GPUs in all, 5 are in use: at most 0" ;;
esac
free_all
limit account physics set grptres=gres/gpu=-1,gres/gpu:a100=-1 grptresmins=gres/gpu=100 -- 'GrpTRESMins=.*gres/gpu=100('
dry -t 30
expect "minutes that are left" test "$(gpus_of_command "$out")" -le 3
refused "too few of them" "GPU minutes left: at most 0 GPUs for 200 minutes" -t 200
limit account physics set grptresmins=gres/gpu=-1 -- 'Account=physics UserName= .*gres/gpu=N('

# Partitions, processors, nodes, numbers of jobs.
sacctmgr -i add qos part maxtresperjob=gres/gpu=1 >/dev/null
wait_until 20 known QOS=part
scontrol update partitionname=fast qos=part
plans "the QOS of a partition" 1 -p fast
scontrol update partitionname=fast qos=
scontrol update partitionname=fast allowaccounts=biology
dry
expect "a partition that is closed to the default account" equal "$rc $(nodes_of_command "$out")" "0 t1 t2 v1 v2"
scontrol update partitionname=fast allowaccounts=ALL
limit qos normal set maxtresperjob=cpu=10 -- MaxTRESPJ=cpu=10
planned -p fast -o /dev/null body.sh
expect "few processors: it starts" submitted
cpus=$(scontrol show job -o "$job" | sed -n 's/.* NumCPUs=\([0-9]*\).*/\1/p')
expect "with a GPU each and no more processors" equal "$cpus $(scontrol show job -o "$job" | grep -o 'TresPerNode=[^ ]*' | tr / :)" "8 TresPerNode=gres:gpu:a100:4" # gres/gpu since 23.02
release
limit qos normal set maxtresperjob=cpu=-1,node=2 -- MaxTRESPJ=node=2
dry
expect "few nodes" equal "$rc $(nodes_of_command "$out" | wc -w)" "0 2"
limit qos normal set maxtresperjob=node=-1 maxjobsperuser=1 -- 'QOS=normal.*MaxJobsPU=1('
refused "one job" "QOS normal allows 1 job per user, the plan needs 2, one for each partition: choose one with --partition"
plans "in one partition" 8 -p fast
limit qos normal set maxjobsperuser=-1 -- 'QOS=normal.*MaxJobsPU=N('

# What is hidden from users is noted.
echo PrivateData=usage >>"$SLURM_CONF"
scontrol reconfigure
expect "hidden accounts" wait_until 20 eval 'dry && contains "$err" "note: group limits of accounts are not known: PrivateData=usage hides them"'
plans "the limits of a QOS" 6 --qos=limited
sed -i '/^PrivateData/d' "$SLURM_CONF"
scontrol reconfigure
expect "are shown again" wait_until 20 eval 'dry && ! contains "$err" PrivateData'

# Plain jobs.
before=$(queries)
hold -p fast --gres=gpu:1
expect "a plain job costs no query" equal "$(queries)" "$before"
scancel "$held"
dry
expect "a planned one costs one" equal "$(queries)" $((before + 1))
finish
