#!/bin/bash
# Planned jobs run on exactly the planned nodes; options, drained nodes and given plans change them; impossible requests give one error
# line.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

planned() { run sbatch --sailor-objective=throughput "$@"; }
# lands WHAT: the last submitted job runs on the nodes of its plan, on whole nodes.
lands() {
  if [ $rc != 0 ] || ! submitted; then not_ok "$1: submitted and started"; return; fi
  expect "$1: runs on exactly the planned nodes" equal "$(nodes_of_job "$job")" "$(nodes_of_plan "plan.$job")"
}

# Over two partitions: a heterogeneous job.
sdiag -r
planned --sailor-job=tiny.yaml --sailor-max-gpus=T4-16=0 -o /dev/null body.sh
expect "jobs are read once" equal "$(requests REQUEST_JOB_INFO)" 1
# Not at all where a submission of the minute before has left them.
expect "so are partitions" test "$(requests REQUEST_PARTITION_INFO)" -le 1
expect "so are reservations" test "$(requests REQUEST_RESERVATION_INFO)" -le 1
expect "nodes at most three times" test "$(requests REQUEST_NODE_INFO)" -le 3 # again after a slow search, and when the job has to wait
expect "the federation never" equal "$(requests REQUEST_FED_INFO)" 0
lands "two partitions"
both=$(nodes_of_job "$job")
expect "it has both partitions" equal "$(partitions_of_job "$job")" "fast medium"
expect "as components of one job" contains "$(scontrol show job -o "$job")" "HetJobIdSet="
expect "the job knows its spec" equal "$(cat "job.$job")" "$work/tiny.yaml"
expect "the table marks the chosen plan" contains "$err" "* 8 A100-40"
planned --sailor-job=tiny.yaml --sailor-dry-run body.sh
others=$(nodes_of_command "$out")
expect "other nodes are free" test -n "$others"
expect "nodes in use are not planned" equal "$(comm -12 <(tr ' ' '\n' <<<"$both") <(tr ' ' '\n' <<<"$others"))" ""
release

# Limits change plan and nodes.
planned --sailor-job=tiny.yaml --sailor-max-gpus=A100-40=2,V100-16=0,T4-16=0 -o /dev/null body.sh
lands "two GPUs"
expect "fewer GPUs: fewer nodes" equal "$(nodes_of_job "$job" | wc -w)" 1
expect "an ordinary job" equal "$(scontrol show job -o "$job" | grep -c HetJobIdSet || true)" 0
release

# -p restricts the plan, --exclude keeps nodes out.
planned --sailor-job=tiny.yaml -p small,medium --exclude=v1 -o /dev/null body.sh
lands "-p small,medium --exclude=v1"
expect "only there" equal "$(nodes_of_job "$job")" "t1 t2 v2"
release

# A drained partition.
drain() { scontrol update nodename="$1" state="$2" ${3:+reason=$3}; }
restore() { drain a[1-2] resume 2>/dev/null || true; }
planned --sailor-job=tiny.yaml --sailor-dry-run body.sh
before=$(nodes_of_command "$out")
expect "before: the fast nodes are planned" contains " $before " " a1 a2 "
drain a[1-2] drain test
planned --sailor-job=tiny.yaml -o /dev/null body.sh
lands "fast drained"
expect "without the drained nodes" equal "$(comm -12 <(printf 'a1\na2\n') <(nodes_of_job "$job" | tr ' ' '\n'))" ""
drain a[1-2] resume
release

# What administrators set is remembered for a minute, but never the reason for a job to wait.
on_one_node() { planned --sailor-job=tiny.yaml --nodes=1 -o /dev/null "$@" body.sh; }
on_one_node -p medium,small
lands "one node of two partitions"
kind=$(partitions_of_job "$job")
release
# They are read again when a job does not start at once, as on a busy machine, and after the minute.
for try in 1 2 3 4 5; do
  sdiag -r
  on_one_node -p medium,small
  lands "again, within the minute"
  read_again="$(requests REQUEST_PARTITION_INFO) $(requests REQUEST_RESERVATION_INFO)"
  release
  [ "$read_again" != "0 0" ] || break
done
expect "partitions and reservations are not read again (try $try)" equal "$read_again" "0 0"
restore() { scontrol update partitionname="$kind" state=UP; drain a[1-2] resume 2>/dev/null || true; }
scontrol update partitionname="$kind" state=DOWN
on_one_node -p medium,small
expect "a partition that was closed meanwhile is noticed" contains "$err" "partitions or reservations have changed; job "
lands "a partition is closed"
expect "in the other one" test "$(partitions_of_job "$job")" != "$kind"
release
scontrol update partitionname="$kind" state=UP
on_one_node -p "$kind"
lands "opened again"
release

# Dry run.
before=$(last_job)
planned --sailor-dry-run tiny.yaml
expect "a dry run exits 0" equal $rc 0
expect "prints the sbatch command" contains "$out" "sbatch --sailor-objective=throughput --sailor-dry-run --partition="
expect "and the table" contains "$err" "ITER (s) TOKENS/s"
expect "and submits nothing" equal "$(last_job)" "$before"

# A given plan.
cat >given.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2,
 "pipelines": [{"microbatches": 8, "stages": [
   {"layers": [0, 4], "gpu_type": "T4-16", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "t2", "gpus": [0, 1]},
   {"layers": [4, 8], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v2", "gpus": [3]}]}],
 "zero1": false, "interleave": 1}
PLAN
chmod a+r given.json
run sbatch --sailor-plan=given.json --sailor-job=tiny.yaml -o /dev/null body.sh
lands "given plan"
expect "the given nodes" equal "$(nodes_of_job "$job")" "t2 v2"
run sbatch --sailor-plan=given.json --sailor-job=tiny.yaml body.sh
expect "a given plan whose nodes are taken exits 3" equal $rc 3
release
# One component asks for its ranks one by one, the other for as many on every node.
cat >uneven.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2,
 "pipelines": [{"microbatches": 8, "stages": [
  {"layers": [0, 3], "gpu_type": "T4-16", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "t2", "gpus": [0, 1]},
  {"layers": [3, 6], "gpu_type": "T4-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "t1", "gpus": [0]},
  {"layers": [6, 8], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v2", "gpus": [3]}]}],
 "zero1": false, "interleave": 1}
PLAN
chmod a+r uneven.json
run sbatch --sailor-plan=uneven.json --sailor-job=tiny.yaml -o /dev/null body.sh
lands "nodes with different numbers of ranks beside others"
release
sed 's/"layers": \[4, 8\]/"layers": [4, 7]/' given.json >short.json
sed 's/"tp": 2/"tp": "two"/' given.json >wrong.json
head -c 100 given.json >cut.json
chmod a+r ./*.json
before=$(last_job)
for file in short.json wrong.json cut.json missing.json; do
  run sbatch --sailor-plan=$file --sailor-job=tiny.yaml body.sh
  expect "$file: exit 2" equal $rc 2
  expect "$file: one line" one_error "$err"
done

# Infeasible and bad input: one error line, nothing submitted.
planned --sailor-min-throughput=1e9 tiny.yaml
expect "infeasible: exit 3" equal $rc 3
expect "infeasible: one line" one_error "$err"
planned --sailor-max-gpus=A100-40=0,V100-16=0,T4-16=0 tiny.yaml
expect "no GPUs allowed: exit 3" equal $rc 3
sed 's/layers: 6/layers: -6/' tiny.yaml >bad.yaml
printf '#!/bin/bash\nhostname\n' >no_spec.sh
chmod a+r bad.yaml no_spec.sh
refused() { # TEXT ARGUMENT...: bad input
  local text=$1
  shift
  run sbatch "$@"
  expect "$*: exit 2" equal $rc 2
  expect "$*: one line" one_error "$err"
  expect "$*: says $text" contains "$err" "$text"
}
refused "bad.yaml:3: " --sailor-objective=cost bad.yaml
refused "not a job spec" --sailor-objective=cost no_spec.sh
refused "throughput, cost or energy" --sailor-objective=speed tiny.yaml
refused "did you mean" --sailor-max-gpus=A100-4O=2 tiny.yaml
refused "did you mean \"small\"" --sailor-objective=cost -p smal tiny.yaml
refused "the plan decides it" --sailor-objective=cost -n2 tiny.yaml
refused "remove ':'" --sailor-objective=cost -p fast : -p small tiny.yaml
refused "missing.yaml" --sailor-job=missing.yaml body.sh
expect "nothing of that was submitted" equal "$(last_job)" "$before"

# Options in #SBATCH lines and in the environment; commands inside the job are plain ones.
cat >lines.sh <<'SCRIPT'
#!/bin/bash
#SBATCH --sailor-objective=throughput --sailor-job=tiny.yaml
#SBATCH --sailor-max-gpus=A100-40=0,T4-16=0 -o lines.out -J lines -t 5
srun --overlap --mem=0 -N1 -n1 echo inside
sbatch -o inner.out --wrap 'env | grep -c SLURM_SPANK_SAILOR_PLAN; echo inner'
bash ./body.sh
SCRIPT
chmod a+r lines.sh
run sbatch lines.sh
lands "#SBATCH lines"
expect "their limit counts" equal "$(nodes_of_job "$job" | tr -d 0-9)" "v v"
touch go
expect "srun inside is plain" wait_until 30 has_text lines.out inside
expect "sbatch inside is plain" wait_until 60 has_text inner.out inner
expect "and inherits no plan" equal "$(head -1 inner.out)" 0
release
export SAILOR_MAX_GPUS=A100-40=0,V100-16=0
planned --sailor-job=tiny.yaml -o /dev/null body.sh
unset SAILOR_MAX_GPUS
lands "environment"
expect "its limit counts" equal "$(nodes_of_job "$job" | tr -d 0-9)" "t t"
release

# The script on standard input, as a pipe and as a file; the job's environment without the user's.
rc=0
cat body.sh | user timeout 60 sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -o /dev/null >"$work/.out" 2>"$work/.err" || rc=$?
lands "pipe"
release
# A pipe that no option on the command line is about is Slurm's alone; a plan cannot come from options in it.
rc=0
sed '2i #SBATCH --sailor-objective=throughput --sailor-job=tiny.yaml' body.sh | user timeout 60 sbatch -o /dev/null >"$work/.out" 2>"$work/.err" || rc=$?
expect "options in a pipe" equal "$rc" 2
expect "are refused with the remedy" contains "$(cat "$work/.err")" "give one of them on the command line"
rc=0
user timeout 60 sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -o /dev/null --export=NONE <body.sh >"$work/.out" 2>"$work/.err" || rc=$?
lands "redirected, --export=NONE"
release
rc=0
out=$(cat tiny.yaml | user timeout 60 sbatch --sailor-objective=cost --sailor-dry-run 2>"$work/.err") || rc=$?
expect "a job spec on standard input" contains "$out" "--nodelist="
finish
