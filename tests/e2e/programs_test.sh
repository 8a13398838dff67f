#!/bin/bash
# Every --sailor-* option on each of sbatch, salloc and srun; programs of salloc and srun run on the planned nodes and get the plan; inside
# a job srun never plans. The script as a file, from a pipe, from a here-document, with --wrap. Options of other plugins survive.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cp "$plugstack" "$work/plugstack.good"
restore() { cp "$work/plugstack.good" "$plugstack"; }
chmod a+rx tiny.yaml
nodes() { nodes_of_command "$out"; }
plan_of() { # what body.sh does, for any command
  cat <<'SH'
{ printf '\x1f\x8b\x08\x00\x00\x00\x00\x00'; base64 -d <<<"$SLURM_SPANK_SAILOR_PLAN_0"; } | gzip -dc 2>/dev/null | grep -o '"node": *"[^"]*"' | cut -d'"' -f4 | sort -u
SH
}

# A plan for the tests of --sailor-plan: the planner's own plan for one node.
cat >given.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2,
 "pipelines": [{"microbatches": 8, "stages": [
   {"layers": [0, 8], "gpu_type": "T4-16", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "t2", "gpus": [0, 1]}]}],
 "zero1": false, "interleave": 1}
PLAN
chmod a+r given.json

for program in sbatch salloc srun; do
  case $program in sbatch) what=body.sh ;; *) what=hostname ;; esac
  dry() { run $program --sailor-job=tiny.yaml --sailor-dry-run "$@" $what; }
  before=$(last_job)
  dry --sailor-objective=throughput
  expect "$program --sailor-objective=throughput" contains "$out" "$program --sailor-job=tiny.yaml"
  many=$(nodes | wc -w)
  dry --sailor-objective=cost
  expect "$program --sailor-objective=cost: fewer nodes" test "$(nodes | wc -w)" -lt "$many"
  dry --sailor-objective=throughput --sailor-max-cost=0.03
  expect "$program --sailor-max-cost: fewer nodes" test "$rc$(nodes | wc -w)" -lt "$many"
  dry --sailor-objective=throughput --sailor-max-energy=1mJ
  expect "$program --sailor-max-energy: a unit that there is not" equal "$rc $(one_error "$err" && echo one)" "2 one"
  dry --sailor-objective=cost --sailor-min-throughput=0.1
  expect "$program --sailor-min-throughput: enough GPUs" test "$(nodes | wc -w)" -ge 2
  dry --sailor-max-gpus=A100-40=4,T4-16=0,V100-16=0
  expect "$program --sailor-max-gpus" equal "$(nodes)" a1
  dry --sailor-partitions=small
  expect "$program --sailor-partitions" equal "$(nodes)" "t1 t2"
  dry --sailor-zones=elsewhere
  expect "$program --sailor-zones: unknown ones are an error" equal "$rc $(one_error "$err" && echo one)" "2 one"
  dry --sailor-zones=dev-a
  expect "$program --sailor-zones" test "$(nodes | wc -w)" = "$many"
  dry --sailor-plan=given.json
  expect "$program --sailor-plan" equal "$(nodes)" t2
  dry --sailor-wait=sometimes
  expect "$program --sailor-wait: wrong words are an error" equal "$rc $(one_error "$err" && echo one)" "2 one"
  dry --sailor-wait=nodes --sailor-time-limit=1.5 --sailor-effort=2
  expect "$program --sailor-wait, --sailor-time-limit, --sailor-effort" test "$rc $(nodes | wc -w)" = "0 $many"
  export SAILOR_MAX_GPUS=A100-40=0,V100-16=0
  dry --sailor-objective=throughput
  expect "$program: SAILOR_MAX_GPUS" equal "$(nodes)" "t1 t2"
  unset SAILOR_MAX_GPUS
  dry --sailor-objective=cost -n3
  expect "$program -n3: refused" equal "$rc $(one_error "$err" && echo one)" "2 one"
  run $program --help
  expect "$program --help shows them" equal "$(grep -c '\[sailor\]' <<<"$out")" 17
  expect "$program: nothing was submitted" equal "$(last_job)" "$before"
done

# salloc: one component and two; the command gets the plan, and so does srun inside.
run salloc --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-max-gpus=T4-16=0,V100-16=0 \
  bash -c "echo \$SLURM_JOB_NODELIST; $(plan_of)"
expect "salloc runs its command on the planned nodes" equal "$out" 'a[1-2]
a1
a2'
wait_idle
run salloc --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-max-gpus=T4-16=0 \
  bash -c 'echo $SLURM_HET_SIZE; srun --overlap -N1 -n1 bash -c "echo plan of \${#SLURM_SPANK_SAILOR_PLAN_0}"; srun --sailor-objective=cost hostname'
expect "salloc: two components" contains "$out" "2"
expect "srun inside sees the plan" test "$(sed -n 's/plan of //p' <<<"$out")" -gt 100
expect "srun inside never plans, and says so" contains "$err" "a step runs under the job's plan"
expect "salloc ends with its command's exit code" equal $rc 2
wait_idle
run salloc --sailor-objective=throughput --sailor-max-gpus=T4-16=0,V100-16=0,A100-40=4 ./tiny.yaml --help
expect "a job spec as salloc's command" contains "$out" "sailor run"
run salloc --sailor-objective=throughput hostname
expect "salloc without a job spec: one line" equal "$rc $(one_error "$err" && echo one)" "2 one"

# srun: a task per GPU, each on the planned node, also if nodes have different numbers of ranks.
wait_idle
run srun --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-max-gpus=T4-16=0 bash -c 'echo $SLURMD_NODENAME'
expect "srun: a task per GPU, over two partitions" equal "$(sort <<<"$out" | uniq -c | tr -s ' ' | paste -sd,)" " 4 a1, 4 a2, 4 v1, 4 v2"
wait_idle
cat >uneven.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2,
 "pipelines": [
   {"microbatches": 4, "stages": [{"layers": [0, 8], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "a1", "gpus": [0]}]},
   {"microbatches": 4, "stages": [{"layers": [0, 8], "gpu_type": "A100-40", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "a2", "gpus": [0, 1]}]}],
 "zero1": false, "interleave": 1}
PLAN
chmod a+r uneven.json
run srun --sailor-plan=uneven.json --sailor-job=tiny.yaml bash -c 'echo $SLURMD_NODENAME'
expect "srun: unlike numbers of tasks" equal "$(sort <<<"$out" | paste -sd' ')" "a1 a2 a2"
run srun --sailor-objective=throughput ./tiny.yaml
expect "srun of a job spec: one line that names salloc" contains "$err" "salloc"
expect "with exit code 2" equal $rc 2
wait_idle

# A script as here-document and with --wrap (file and pipe: e2e.submit).
rc=0
user timeout 60 sbatch --sailor-objective=throughput --sailor-job=tiny.yaml --sailor-max-gpus=A100-40=0 -o here.out >"$work/.out" 2>"$work/.err" <<'SCRIPT' || rc=$?
#!/bin/bash
#SBATCH -p small
echo here $SLURM_JOB_NODELIST ${#SLURM_SPANK_SAILOR_PLAN_0}
SCRIPT
expect "a here-document" wait_until 30 has_text here.out 'here t\[1-2\] [1-9]'
run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -p fast -o wrap.out --wrap 'echo wrapped $SLURM_JOB_NODELIST'
expect "--wrap" wait_until 30 has_text wrap.out 'wrapped a\[1-2\]'
wait_idle

# Another plugin's option reaches the job, in every program, with a plan and without.
other=$SAILOR_BUILD_DIR/lib/spank_other.so
echo "optional $other" >>"$plugstack"
run sbatch --other-image=plain -o other.out --wrap 'echo image $OTHER_IMAGE'
expect "another plugin's option, plain" wait_until 30 has_text other.out "image plain"
run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -p small --other-image=planned -o other.out --wrap 'echo image $OTHER_IMAGE'
expect "planned" wait_until 30 has_text other.out "image planned"
wait_idle
run srun --sailor-objective=throughput --sailor-job=tiny.yaml -p small --other-image=step bash -c 'echo image $OTHER_IMAGE'
expect "with srun" equal "$(sort -u <<<"$out")" "image step"
finish
