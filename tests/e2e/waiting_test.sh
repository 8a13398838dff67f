#!/bin/bash
# Nodes in use by others: the error says so, with a remedy. Waiting is offered when it pays, and the offer is kept. If nodes are taken just
# before the submission, the job is replanned or waits, and prints which.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export SAILOR_WAIT=plan # start_test.sh tests the default
cp "$plugstack" "$work/plugstack.good"
restore() { cp "$work/plugstack.good" "$plugstack"; scancel -u "$SAILOR_CLUSTER_USER" 2>/dev/null || true; }
# hold NODES TIME_LIMIT [OPTION...]: another user's job that fills these nodes of one partition.
hold() {
  local nodes=$1 limit=$2 job
  shift 2
  run sbatch -w "$nodes" --exclusive -t "$limit" -o /dev/null "$@" --wrap 'sleep 300'
  job=$(sed -n 's/^Submitted batch job //p' <<<"$out")
  wait_until 20 eval '[ "$(squeue -h -j '"$job"' -o %T)" = RUNNING ]'
}
free_all() { scancel -u "$SAILOR_CLUSTER_USER"; wait_idle; }
planned() { run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml "$@"; }

# Busy nodes: the error has their number, when they become free, and how to wait.
hold a1,a2 10 -p fast
planned -p fast body.sh
expect "all of its nodes are busy: exit 3" equal "$rc $(one_error "$err" && echo one)" "3 one"
expect "it counts them" contains "$err" "is busy: 2 nodes of type A100-40 (in use); they come free within 10 min"
expect "and says what to do" contains "$err" "wait for them with --sailor-wait=nodes"
planned --sailor-min-throughput=1e-9 --sailor-max-gpus=V100-16=0,T4-16=0 body.sh
expect "other nodes are free, but not wanted: exit 3" equal "$rc $(one_error "$err" && echo one)" "3 one"
expect "the busy ones are the reason" contains "$err" "every feasible plan needs busy nodes: 2 nodes of type A100-40 (in use)"
run sailor cluster --format yaml
expect "the snapshot lists them" equal "$(grep -cE 'gpu_type: A100-40, gpus: 4, .*state: "in use", free_in_s: ' <<<"$out")" 2
planned -p fast --sailor-wait=nodes --sailor-dry-run body.sh
expect "waiting plans with them" equal "$rc" 0
expect "the job says for which" contains "$err" "note: planned for a[1-2]; Slurm may choose equal nodes"
expect "and asks for as many, not for these" equal "$(nodes_of_command "$out")$(grep -o -- ' --nodes=[0-9]*' <<<"$out")" " --nodes=2"
planned -p fast --sailor-wait=nodes --sailor-pin --sailor-dry-run body.sh
expect "--sailor-pin asks for these" equal "$rc $(nodes_of_command "$out")" "0 a1 a2"

# When waiting pays: a long training on the slowest nodes; the others become free in ten minutes, or in twelve hours.
sed 's/steps: 4/steps: 1000/' tiny.yaml >long.yaml
chmod a+r long.yaml
planned --sailor-dry-run body.sh
expect "a short training need not wait" test "$rc$(grep -c 'waiting until' <<<"$err")" = 00
hold v1,v2 12:00:00 -p medium
long() { run sbatch --sailor-objective=throughput --sailor-job=long.yaml --sailor-dry-run "$@" body.sh; }
long
expect "a long one may" contains "$err" "note: waiting until "
offer=$(sed -n 's/^note: waiting until .* \(--sailor-wait=nodes.*\)/\1/p' <<<"$err")
expect "not for the nodes of a job that runs much longer" equal "$offer" "--sailor-wait=nodes --exclude=v[1-2]"
expect "it says for what and by how much" equal "$(grep -cE ' for [0-9]+ more GPUs would end the training [0-9]+ (min|h|h [0-9]+ min|days) earlier: ' <<<"$err")" 1
long $offer --sailor-pin
expect "the offer plans what it promised" contains "$(nodes_of_command "$out")" "a1 a2"
expect "without the others" equal "$(nodes_of_command "$out" | grep -c v || true)" 0
expect "and offers nothing more" equal "$(grep -c 'waiting until' <<<"$err" || true)" 0
long --sailor-objective=cost
expect "the cheapest plan is not about time" equal "$(grep -c 'waiting until' <<<"$err" || true)" 0
free_all

# Taken at the last moment: another plugin of the submission starts another user's job on a planned node just before sbatch submits.
echo "optional $SAILOR_BUILD_DIR/lib/spank_other.so" >>"$plugstack"
cat >taker.sh <<'SCRIPT'
#!/bin/bash
[ -e "$1.taken" ] && exit 0
touch "$1.taken"
env -i PATH="$PATH" SLURM_CONF="$SLURM_CONF" sbatch -p small -w t1 -n 1 --gres=gpu:2 -t 5 -o /dev/null --wrap 'sleep 300' >/dev/null
for i in {1..50}; do [ "$(sinfo -h -N -n t1 -o %T | head -1)" = mixed ] && exit 0; sleep 0.1; done
SCRIPT
chmod a+rx taker.sh
taken() { # NAME OPTION...
  local name=$1
  shift
  export OTHER_BEFORE_SUBMIT="./taker.sh $name"
  planned -p small "$@" -o /dev/null body.sh
  unset OTHER_BEFORE_SUBMIT
}
before=$(last_job)
taken again
expect "replanned: it starts" submitted
expect "and says so" contains "$err" "since the job was planned, others took t1 (2 of 2 GPUs in use); job $((before + 2)) is withdrawn, replanning"
expect "it says one job only" equal "$out" "Submitted batch job $job"
expect "on the node that is left" equal "$(nodes_of_job "$job")" t2
expect "the first one is gone" equal "$(scontrol show job -o $((before + 2)) | grep -o 'JobState=[A-Z]*')" JobState=CANCELLED
scancel -u "$SAILOR_CLUSTER_USER"
wait_idle
taken again_het --sailor-partitions=small,medium -p small,medium
expect "two components: it starts" submitted
expect "without the node" equal "$(nodes_of_job "$job")" "$(nodes_of_plan "plan.$job")"
expect "on free nodes" equal "$(nodes_of_job "$job" | grep -c t1 || true)" 0
scancel -u "$SAILOR_CLUSTER_USER"
wait_idle
taken nodes --sailor-wait=nodes --parsable
expect "--sailor-wait=nodes: submitted" equal "$rc" 0
expect "it waits, and says so" contains "$err" "others took t1 (2 of 2 GPUs in use); job $out may start on equal nodes"
expect "for no node by name" equal "$(squeue -h -j "$out" -o '%T %n')" "PENDING "
free_all
taken pinned --sailor-wait=nodes --sailor-pin --parsable
expect "--sailor-pin: it waits, and says so" contains "$err" "others took t1 (2 of 2 GPUs in use); job $out waits for its nodes"
expect "for the planned nodes" equal "$(squeue -h -j "$out" -o '%T %n')" "PENDING t[1-2]"
free_all
taken het --sailor-wait=nodes --sailor-partitions=small,medium --sailor-max-gpus=T4-16=2 -p small,medium --sailor-zones=dev-a
expect "two components: other nodes will do" contains "$err" "may start on equal nodes"
expect "it starts on them" submitted
expect "without the node" equal "$(nodes_of_job "$job" | grep -c t1 || true)" 0
free_all
OTHER_BEFORE_SUBMIT="./taker.sh wait" user timeout 60 sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -p small \
  --sailor-wait=nodes --wait -o /dev/null --wrap true >wait.out 2>wait.err </dev/null &
waiting=$!
expect "sbatch --wait: it says at once that it waits" wait_until 20 has_text wait.err 'may start on equal nodes'
expect "and what it submitted" wait_until 5 has_text wait.out '^Submitted batch job'
scancel -u "$SAILOR_CLUSTER_USER"
wait $waiting || true
touch queue.taken
taken queue --hold
expect "a held job is not touched" equal "$(grep -c withdrawn <<<"$err" || true)" 0
scancel -u "$SAILOR_CLUSTER_USER"
wait_idle
export OTHER_BEFORE_SUBMIT="./taker.sh salloc"
user timeout 20 salloc --sailor-objective=throughput --sailor-job=tiny.yaml -p small true >salloc.out 2>salloc.err || true
unset OTHER_BEFORE_SUBMIT
expect "salloc says itself that it waits" has_text salloc.err 'waiting for resources'
free_all
finish
