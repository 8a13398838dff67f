#!/bin/bash
# An elastic job of another trainer's program: it loses a node, a rank and its first node's neighbour, is started again under a new plan from
# its own checkpoint, uses a node that comes back, takes a node that another job gives back, and trains every sequence once. A program that
# only fails is given up. A signal of the user's reaches the program.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" elastic-programs

program=train_sockets.py
cp "$e2e/fixtures/$program" "$e2e/../../trainer/python/sailor_steps.py" .
# job_yaml STEPS TRAINER ELASTIC
job_yaml() {
  cat >job.yaml <<YAML
#!/usr/bin/env -S sailor run
#SBATCH --job-name=program --time=10 --output=program.%j
model: {family: gpt2, layers: 6, hidden: 64, heads: 4, sequence: 64, vocabulary: 256}
training: {global_batch: 16, steps: $1}
trainer: {kind: torchrun, $2}
elastic: {enabled: true, lease: 3${3:-}}
YAML
  chmod a+rx job.yaml
}
stage() { echo "{\"microbatches\": 2, \"stages\": [{\"layers\": [0, 8], \"gpu_type\": \"A100-40\", \"zone\": \"dev-a\", \"tp\": 1, \"recompute\": \"none\", \"node\": \"$1\", \"gpus\": [$2]}]}"; }
cat >plan.json <<JSON
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2, "zero1": false, "interleave": 1,
 "pipelines": [$(stage a1 0), $(stage a1 1), $(stage a2 0), $(stage a2 1)]}
JSON
chmod a+r plan.json ./*.py
submit() {
  run sbatch "$@" job.yaml
  job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out")
  output=$work/program.$job events=$work/sailor-$job/events.jsonl
  expect "submitted" test -n "$job"
}
steps_of_output() { sed -n 's/^step \([0-9]*\) .*/\1/p' "$output"; }
last_step() { steps_of_output | tail -1; }
# further N: N more steps than now.
further() {
  local from
  from=$(last_step)
  wait_until 60 beyond $((${from:-0} + $1))
}
beyond() { [ "$(last_step)" -ge "$1" ] 2>/dev/null; }
starts() { grep -c '^start at' "$output" || true; }
job_yaml 100000 'command: [python3, train_sockets.py, "100000", "0.1"], grace: 10'
submit --sailor-plan=plan.json
expect "it trains" wait_until 60 has_text "$output" '^step 7 '
expect "on both nodes" has_text "$output" '^start at 0: 4 ranks, restart 0'

# Slurm does not notice; nothing is said by the node.
before=$(now)
power_off a2 2
expect "it goes on without the lost node" wait_until 60 has_text "$output" '^start at [0-9]*: 2 ranks, restart 1'
ok "ranks run again after $(seconds_since "$before") s"
expect "from its own checkpoint" test "$(sed -n 's/^start at \([0-9]*\): 2 ranks.*/\1/p' "$output")" -ge 5
expect "the loss is the reason" contains "$(last_event running)" 'a2 is lost'
expect "it trains" further 5

victim=$(programs_on a1 | tail -1)
kill -9 "$victim"
expect "a rank that fails is started again" wait_until 60 has_text "$output" '^start at [0-9]*: 2 ranks, restart 2'
expect "as a failure of the program" contains "$(last_event running)" '"failed":true'

revive_nodes a2
expect "the node that is back is used" wait_until 90 has_text "$output" '^start at [0-9]*: 4 ranks, restart 3'
expect "the ranks were told why" has_text "$output" '^told to end: more GPUs are ready'
expect "it trains" further 5
told=$(grep -n '^told to end: more' "$output" | tail -1 | cut -d: -f1)
expect "no step is lost when ranks are told" equal \
  "$(head -n "$told" "$output" | sed -n 's/^step \([0-9]*\) .*/\1/p' | tail -1 | awk '{ print $1 + 2 }')" \
  "$(sed -n 's/^start at \([0-9]*\): 4 ranks, restart 3.*/\1/p' "$output")"

expect "the first step after each change is known" wait_until 30 more_events resumed 2
scancel --batch --signal=TERM "$job"
expect "it ends when it is told to" wait_until 30 no_jobs
expect "and says how it went" has_text "$output" '^sailor: stopped by signal 15 (Terminated); 4 generations, ranks ran again after [0-9.]* s (median), 1 restart of a failed program$'
run sailor status "$job"
expect "sailor status knows it" contains "$out" 'cancelled: stopped by signal 15'
expect "and its steps" equal "$(sed -n 's/^step *//p' <<<"$out")" "$(($(last_step) + 1))/100000"
expect "and there is one for each" equal "$(count_events resumed)" 3
expect "the time of an iteration was measured" test "$(json "sailor-$job/summary.json" measured_iteration_s | cut -c1-3)" = 0.1
expect "and the memory of every rank" equal "$(grep -c '"peak_rss_bytes": [1-9]' "sailor-$job/summary.json")" 4
run sailor report "$job"
expect "sailor report shows it" contains "$(cat "sailor-$job/report.html")" 'a2 is lost'
expect "no process is left" wait_until 10 no_programs

# The same job again goes on, and ends by itself. Every step trained the whole batch, whatever the plan.
done_before=$(sed 's/^\[\([0-9]*\).*/\1/' sum.json)
job_yaml 100000 "command: [python3, train_sockets.py, '$((done_before + 20))', '0.05']"
submit --sailor-plan=plan.json
wait_idle
expect "it has ended" has_text "$output" '^sailor: all ranks have ended$'
expect "every sequence was trained once" equal "$(cat sum.json)" "[$((done_before + 20)), $((16 * (done_before + 20)))]"
expect "Slurm says so" contains "$(scontrol show job "$job")" 'JobState=COMPLETED'

# From a script of one's own.
cat >own.sh <<'SH'
#!/bin/bash
exec sailor launch -- python3 train_sockets.py "$@"
SH
chmod a+rx own.sh
job_yaml 100000 'command: [does-not-exist]'
run sbatch --output=own.%j --sailor-plan=plan.json --sailor-job=job.yaml own.sh $((done_before + 40)) 0.2
job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out") output=$work/own.$job
expect "sailor launch: it trains" wait_until 60 has_text "$output" "^step $((done_before + 23)) "
kill -9 "$(programs_on a1 | tail -1)"
expect "sailor launch: it is started again" wait_until 60 has_text "$output" 'restart 1'
wait_idle
expect "sailor launch: to the end" equal "$(cat sum.json)" "[$((done_before + 40)), $((16 * (done_before + 40)))]"

# A framework that takes its plan as flags: they are those of the plan in force.
rm -f sum.json
job_yaml 100000 'command: [python3, train_sockets.py, "100000", "0.1", "{flags}"]'
sed -i 's/kind: torchrun/kind: megatron-core/; s/global_batch: 16/global_batch: 24/' job.yaml
flag() { sed -n "s/^start at.*restart $1, flags.*'--$2', '\([0-9]*\)'.*/\1/p" "$output"; }
size() { grep -o "\"$1\": *[0-9]*" "sailor-$job/plan.json" | head -1 | grep -o '[0-9]*$'; }
submit --sailor-objective=throughput
expect "it trains" wait_until 60 has_text "$output" '^step 2 '
expect "with the microbatch of its plan" equal "$(flag 0 micro-batch-size)" "$(size microbatch)"
lost=$(nodes_of_plan "sailor-$job/plan.json" | tr ' ' '\n' | grep -v $controller_node | head -1)
ranks=$(sed -n 's/^start at 0: \([0-9]*\) ranks.*/\1/p' "$output")
kill_nodes "$lost"
expect "it goes on without $lost" wait_until 60 has_text "$output" ' restart 1, flags'
expect "with the microbatch of its new plan" equal "$(flag 1 micro-batch-size)" "$(size microbatch)"
expect "with fewer ranks" test "$(sed -n 's/^start at .*: \([0-9]*\) ranks, restart 1.*/\1/p' "$output")" -lt "$ranks"
scancel "$job"
revive_nodes "$lost"
wait_idle

# A rank hangs: the others wait for it, and none fails.
rm -f sum.json
job_yaml 100000 'command: [python3, train_sockets.py, "100000", "0.1"], grace: 2, hang_timeout: 10s'
submit --sailor-plan=plan.json
expect "it trains" wait_until 60 has_text "$output" '^step 7 '
kill -STOP "$(programs_on a2 | tail -1)"
expect "a program that hangs is started again" wait_until 60 has_text "$output" '^start at [1-9][0-9]*: 4 ranks, restart 1'
expect "the log says why" has_text "$output" '^elastic: no step for [0-9]* s.*: the ranks are told to end'
expect "as a failure of the program" contains "$(last_event running)" '"failed":true'
expect "it trains" further 5
scancel "$job"
wait_idle
expect "no process is left" no_programs

# A program that fails whatever the nodes.
job_yaml 10 "command: [bash, -c, 'echo attempt; exit 7'], restarts: 1"
submit --sailor-plan=plan.json
wait_idle
expect "it was started twice" equal "$(count_events generation)" 2
expect "and given up" has_text "$output" '^sailor: a rank on a[12] failed with exit code 7, 2 times in a row'
expect "with its exit code" equal "$(scontrol show job "$job" | sed -n 's/.*ExitCode=\([0-9]*\):.*/\1/p' | head -1)" 7

# Signals that are not for Sailor.
job_yaml 10 "command: [bash, -c, 'trap \"echo saved; exit 0\" USR1; while :; do sleep 0.1; done']"
submit --sailor-plan=plan.json
expect "it runs" wait_until 60 has_text "$events" '"event":"running"'
scancel --batch --signal=USR1 "$job"
wait_idle
expect "USR1 reaches all ranks" equal "$(grep -c saved "$output")" 4

# Before its time limit the program is told to end; another job continues.
rm -f sum.json
job_yaml 100000 'command: [python3, train_sockets.py, "500", "0.1"], grace: 5'
submit --time=1 --sailor-plan=plan.json
first=$job
expect "it stops before its time limit" wait_until 90 has_text "$output" '^told to end: stopped [0-9]* s before its time limit'
expect "another job continues" wait_until 30 has_text "$output" '^sailor: training continues in job '
job=$(sed -n 's/^sailor: training continues in job \([0-9]*\).*/\1/p' "$output") output=$work/program.$job
expect "as Slurm knows" contains "$(scontrol show job "$first")" 'JobState=COMPLETED'
expect "from the checkpoint" wait_until 90 has_text "$output" '^start at [1-9]'
expect "to the end" wait_until 120 has_text "$output" '^sailor: all ranks have ended'
wait_idle
expect "every sequence was trained once, over both jobs" equal "$(cat sum.json)" '[500, 8000]'
expect "both are one run" equal "$(readlink "sailor-$job")" "sailor-$first"
expect "with all its steps" equal "$(wc -l <"sailor-$first/metrics.jsonl")" 500

# It grows: a2 is free after a while.
rm -f sum.json
run sbatch -p all -w a2,v1,v2,t1,t2 --exclusive --wrap "sleep 3600"
held=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out")
job_yaml 100000 'command: [python3, train_sockets.py, "100000", "0.1"]' ', grow_every: 2'
submit --sailor-objective=throughput --sailor-wait=none
expect "it trains on the one free node" wait_until 60 has_text "$output" '^start at 0: [124] ranks'
scancel "$held"
expect "it takes another node" wait_until 90 more_events grew 0
expect "and trains on it" wait_until 90 has_text "$output" '^start at [1-9][0-9]*: [0-9]* ranks, restart 1'
expect "with more ranks" test "$(sed -n 's/^start at [1-9][0-9]*: \([0-9]*\) ranks.*/\1/p' "$output" | head -1)" -gt "$(sed -n 's/^start at 0: \([0-9]*\) ranks.*/\1/p' "$output")"
expect "it goes on" further 5
scancel "$job"
wait_idle
expect "no process is left" no_programs
expect "no helper job is left" test -z "$(squeue -h -o %A)"

# A job that is not elastic: its ranks fail when a2 dies, long before Slurm knows. It is there when Slurm does, and is requeued.
rm -f sum.json
job_yaml 100000 'command: [python3, train_sockets.py, "40", "0.2"], grace: 2s'
sed -i 's/enabled: true/enabled: false/' job.yaml
submit --requeue --open-mode=append --sailor-plan=plan.json
expect "it trains" wait_until 60 has_text "$output" '^step 7 '
power_off a2 2
expect "it waits for Slurm" wait_until 60 has_text "$output" '^sailor: a2 does not answer'
expect "which requeues it" wait_until 90 started_again
revive_nodes a2
sleep 2   # slurmd takes no job that starts in the second in which it was requeued
goes_on() { restart_now; has_text "$output" '^start at [1-9]'; }
expect "it goes on from its checkpoint" wait_until 90 goes_on
wait_idle
expect "every sequence was trained once" equal "$(cat sum.json)" '[40, 640]'
finish
