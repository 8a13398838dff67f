#!/bin/bash
# Shapes, not names: a job that waits starts on the first nodes that are equal to the planned ones, with the same losses. --sailor-pin waits
# for exactly these. A node that is lost before the start, or before a requeued job starts again, is not waited for. Kinds of nodes that
# share a partition are told apart by features.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

cp "$SAILOR_CLUSTER_DIR/etc/slurm.conf" "$work/slurm.conf.good"
restore() {
  squeue -h -o %A | sort -u | xargs -r scancel
  pgrep -F "$SAILOR_CLUSTER_DIR/run/slurmd.a2.pid" >/dev/null 2>&1 || revive
  cp "$work/slurm.conf.good" "$SAILOR_CLUSTER_DIR/etc/slurm.conf"
  scontrol delete partitionname=mixed 2>/dev/null || true
  scontrol update nodename=a[1-2] state=resume 2>/dev/null || true
  scontrol update nodename=a[1-2],v[1-2] activefeatures= availablefeatures=
  scontrol reconfigure
}
revive() { slurmd -N a2 >/dev/null 2>&1 </dev/null; }
# hold NODE [OPTION...]: another job takes it; sets holder.
hold() {
  run sbatch -w "$1" --exclusive -t 10 -o /dev/null "${@:2}" --wrap 'sleep 600'
  holder=$(job_submitted)
  wait_until 20 is "$holder" RUNNING
}
is() { [ "$(squeue -h -j "$1" -o %T 2>/dev/null | head -1)" = "$2" ]; }
free_all() { squeue -h -o %A | sort -u | xargs -r scancel; wait_idle; }
# waiting_job [OPTION...]: a training planned for a2, which is busy. Sets job and output.
waiting_job() {
  start_training -p fast --sailor-wait=nodes "$@"
  expect "it waits" is "$job" PENDING
}
requested() { squeue -h -j "$1" -o %n; }
trained() { wait_until 240 job_ended "$job" && [ "$(json "sailor-$job/summary.json" status)" = finished ]; }

setup_training 20
cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 2,
 "pipelines": [
  {"microbatches": 4, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "a2", "gpus": [0]},
    {"layers": [3, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "a2", "gpus": [1]}]}],
 "zero1": false, "interleave": 1}
JSON
expect "undisturbed: submitted" start_training
expect "undisturbed: by name" equal "$(nodes_of_job "$job")" a2
expect "undisturbed: it trains" trained
expect "undisturbed: it has nothing to say about its nodes" equal "$(grep -c 'planned for' "$output" || true)" 0
reference=$job

# Equal nodes come free first.
hold a1
first=$holder
hold a2
waiting_job
expect "sbatch says that others will do" contains "$err" "note: planned for a2; Slurm may choose equal nodes"
expect "it asks for no node by name" equal "$(requested "$job")" ""
scancel "$first"
expect "it trains" trained
expect "on the node that came free first" equal "$(nodes_of_job "$job")" a1
expect "its plan is on this node" equal "$(nodes_of_plan "sailor-$job/plan.json")" a1
expect "it says so" has_text "$output" "^sailor: planned for a2, runs on a1$"
expect "and at the end" has_text "sailor-$job/summary.json" '"moved": "planned for a2, runs on a1"'
expect "with the losses of the undisturbed run" same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 20
run sailor report "$job" -o report.html
expect "the report has it" has_text report.html "planned for a2, runs on a1"
run sailor explain --run "$job"
expect "the plan is explained on this node" equal "$rc" 0

# --sailor-pin.
waiting_job --sailor-pin
expect "--sailor-pin: it asks for its node" equal "$(requested "$job")" a2
sleep 3
expect "--sailor-pin: it waits for it" is "$job" PENDING
scancel "$holder"
expect "--sailor-pin: it trains" trained
expect "--sailor-pin: on its node" equal "$(nodes_of_job "$job")" a2
run sbatch -p fast -w a2 --sailor-plan=plan.json --sailor-objective=throughput --begin=now+1hour --sailor-dry-run job.yaml
expect "--nodelist: as with --sailor-pin" equal "$(nodes_of_command "$out")" a2

# The planned node is lost before the start.
hold a1
first=$holder
hold a2
waiting_job
kill -9 "$(cat "$SAILOR_CLUSTER_DIR/run/slurmd.a2.pid")"
scontrol update nodename=a2 state=down reason=test
scancel "$first"
expect "its node is down: it trains on another" trained
expect "on the node that is left" equal "$(nodes_of_job "$job")" a1
revive
free_all

# A requeued job starts elsewhere.
hold a2
sed 's/steps: 20/steps: 20000/' job.yaml >long.yaml
chmod a+r long.yaml
run sbatch --sailor-plan=plan.json --sailor-objective=throughput --sailor-wait=nodes -p fast --requeue --open-mode=append long.yaml
job=$(job_submitted)
output=$work/slurm-$job.out
expect "an equal node is free: it starts at once" wait_until 60 steps_done 3
expect "there" equal "$(nodes_of_job "$job")" a1
scancel "$holder"
scontrol update nodename=a1 state=drain reason=test
scontrol requeue "$job"
begun_again() { restart_now; wait_until 3 is "$job" RUNNING; }
expect "requeued: it starts again" wait_until 90 begun_again
expect "on the other node" equal "$(nodes_of_job "$job")" a2
expect "with its plan there" wait_until 60 has_text "sailor-$job/plan.json" '"a2"'
scontrol update nodename=a1 state=resume
free_all

# The same for a job that started on the nodes that it had named.
run sbatch --sailor-plan=plan.json --sailor-objective=throughput -p fast --requeue --open-mode=append long.yaml
job=$(job_submitted)
expect "a job that can start asks for its node" equal "$(requested "$job")" a2
expect "it trains" wait_until 60 steps_done 3
scontrol update nodename=a2 state=drain reason=test
scontrol requeue "$job"
expect "requeued: it starts again" wait_until 90 begun_again
expect "on another node than it had named" equal "$(nodes_of_job "$job")" a1
expect "with its plan there" wait_until 60 has_text "sailor-$job/plan.json" '"a1"'
scontrol update nodename=a2 state=resume
free_all

# A job with fewer nodes than planned, as somebody has changed it, plans again; with other nodes it ends.
cp plan.json one_node.json
cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 2,
 "pipelines": [
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a1", "gpus": [0]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [0]}]}],
 "zero1": false, "interleave": 1}
JSON
cat >carried.sh <<'SCRIPT'
#!/bin/bash
declare -p ${!SLURM_SPANK_SAILOR_PLAN*} ${!SLURM_SPANK_SAILOR_EQUAL*} ${!SLURM_SPANK_SAILOR_CONFIG*} >carried.txt
SCRIPT
cat >other.sh <<'SCRIPT'
#!/bin/bash
. ./carried.txt
exec sailor run job.yaml
SCRIPT
chmod a+rx carried.sh other.sh
run sbatch --sailor-plan=plan.json --sailor-objective=throughput --sailor-job=job.yaml -p fast -o /dev/null carried.sh
expect "a plan on two nodes" wait_until 30 job_ended "$(job_submitted)"
elsewhere() { # NODE PARTITION: runs it there
  run sbatch -p "$2" -w "$1" -n 1 --gres=gpu:1 -o "$1.log" other.sh
  job=$(job_submitted)
}
elsewhere a2 fast
expect "on one of them: it trains" trained
expect "under a new plan" has_text a2.log "^sailor: planned for a1, a2, runs on a2: new search$"
elsewhere t2 small
expect "on another kind: it ends" wait_until 60 job_ended "$job"
expect "with one error" equal "$(cat t2.log)" "sailor: planned for a1, a2, but the job has t2, which are of another kind"
mv one_node.json plan.json

# Submitted by name, the job waits for something else than nodes.
echo "Licenses=sailor:1" >>"$SAILOR_CLUSTER_DIR/etc/slurm.conf"
scontrol reconfigure
hold t1 -p small -L sailor:1
start_training -p fast -L sailor:1
expect "it does not start: the names are dropped" contains "$err" "sailor: job $job has not started on a2, and may start on equal nodes"
expect "it waits" is "$job" PENDING
expect "for any node" equal "$(requested "$job")" ""
start_training -p fast -L sailor:1 --sailor-pin
expect "--sailor-pin: the name stays" equal "$(requested "$job")" a2
expect "--sailor-pin: nothing is said" equal "$(grep -c 'equal nodes' <<<"$err" || true)" 0
free_all

# Nodes of two kinds in one partition: the request fits both, unless features distinguish them.
scontrol create partitionname=mixed nodes=a[1-2],v[1-2] maxtime=1:00:00
cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 2,
 "pipelines": [
  {"microbatches": 4, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "a1", "gpus": [0]},
    {"layers": [3, 6], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v1", "gpus": [0]}]}],
 "zero1": false, "interleave": 1}
JSON
mixed() { run sbatch --sailor-plan=plan.json --sailor-objective=throughput -p mixed --sailor-wait=nodes "$@" job.yaml; }
hold a1 -p mixed
mixed --sailor-dry-run
expect "without features the names stay" equal "$(nodes_of_command "$out")" "a1 v1"
expect "and the reason is told" contains "$err" "note: the job waits for exactly a1,v1: a request for a1 in partition mixed fits v1 too, and no feature distinguishes them"
scontrol update nodename=a[1-2] availablefeatures=gpu,new activefeatures=gpu,new
scontrol update nodename=v[1-2] availablefeatures=gpu,old activefeatures=gpu,old
mixed --sailor-dry-run
expect "with features it asks for one node of each kind" contains "$out" "'--constraint=[new*1&old*1]' --nodes=2"
expect "and for none by name" equal "$(nodes_of_command "$out")" ""
mixed
job=$(job_submitted)
expect "it trains" trained
expect "on one node of each kind" contains "$(nodes_of_job "$job")" "a2 v"
expect "its plan too" equal "$(nodes_of_plan "sailor-$job/plan.json")" "$(nodes_of_job "$job")"
free_all
finish
