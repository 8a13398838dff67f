# Shared by the tests of elastic jobs:
#
#     . elastic_lib.sh NAME [OPTIONS OF cluster.sh up]
#
# starts a separate cluster with an umbrella partition, so that the job is an ordinary one and survives lost nodes. With lib.sh and
# training_lib.sh it provides a job over eight GPUs of six nodes, faults, and queries of the event log. SAILOR_KEEP=DIR keeps the output of
# the runs.
export SAILOR_CLUSTER_DIR=${SAILOR_CLUSTER_DIR:-$(mktemp -u "${TMPDIR:-/tmp}/sailor-$1.XXXXXX")}
"$(dirname "${BASH_SOURCE[0]}")/../cluster.sh" up --umbrella "${@:2}" >/dev/null
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"
trap '[ -z "${SAILOR_KEEP:-}" ] || cp -r "$work" "$SAILOR_KEEP"; leave; "$e2e/../cluster.sh" down' EXIT

# The batch step with the controller is on the first node, which gets no faults.
controller_node=a1

# setup_elastic STEPS PRECISION: job.yaml, reference.yaml (the same, not elastic), text.txt and plan.json, and a profile.
setup_elastic() {
  make_text >text.txt
  # Emulated devices that are a little slower than the CPU, but faster than in the cluster's own catalog: many steps in a short time. All
  # are equal, so that plans use many of them.
  sed -i 's/slowdown: [0-9]*/slowdown: 4/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
  cat >job.yaml <<YAML
#!/usr/bin/env -S sailor run
#SBATCH --job-name=elastic --time=01:00:00
model: {family: gpt2, layers: 4, hidden: 32, heads: 4, sequence: 32, vocabulary: 256}
training:
  global_batch: 8
  steps: $1
  precision: $2
  optimizer: {name: adamw, lr: 2.0e-3, beta2: 0.98}
  clip_grad_norm: 1.0
data: {train: text.txt, format: bytes}
checkpoint: {directory: checkpoints, every_steps: 20, keep: 2}
elastic: {enabled: true}
YAML
  grep -v -e '^elastic' -e '^checkpoint' job.yaml >reference.yaml
  # Eight ranks on six nodes: two pipelines of TP 2 then TP 1, and two pipelines of a single GPU.
  cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 1,
 "pipelines": [
  {"microbatches": 2, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "a1", "gpus": [0, 1]},
    {"layers": [3, 6], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v1", "gpus": [0]}]},
  {"microbatches": 2, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "a2", "gpus": [0, 1]},
    {"layers": [3, 6], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v2", "gpus": [0]}]},
  {"microbatches": 2, "stages": [
    {"layers": [0, 6], "gpu_type": "T4-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "t1", "gpus": [0]}]},
  {"microbatches": 2, "stages": [
    {"layers": [0, 6], "gpu_type": "T4-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "t2", "gpus": [0]}]}],
 "zero1": false, "interleave": 1}
JSON
  chmod a+r ./*.yaml plan.json text.txt
  use_profile "$2"
}

# The same for a job that may grow.
setup_growth() {
  setup_elastic 100000 fp64
  # Iterations that are long compared with other work on two cores; the T4s are useless.
  sed -i '/^ *A100-40:/s/slowdown: [0-9]*/slowdown: 60/; /^ *V100-16:/s/slowdown: [0-9]*/slowdown: 80/; /^ *T4-16:/s/slowdown: [0-9]*/slowdown: 3000/' "$SAILOR_CLUSTER_DIR/etc/catalog.yaml"
  sed -i 's/elastic: {enabled: true}/elastic: {enabled: true, grow_every: 2}/' job.yaml
}

# Four ranks on two nodes instead: plan.json.
plan_on_two_nodes() {
  cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 1,
 "pipelines": [
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a1", "gpus": [0]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a1", "gpus": [1]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [0]}]},
  {"microbatches": 2, "stages": [{"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "node": "a2", "gpus": [1]}]}],
 "zero1": false, "interleave": 1}
JSON
}
# The undisturbed run: sets reference to its job.
train_reference() {
  run sbatch --sailor-plan=plan.json --sailor-objective=throughput reference.yaml
  reference=$(job_submitted)
  expect "the undisturbed run ends" wait_until 200 job_ended "$reference"
}
# start_elastic [SBATCH OPTIONS]: like start_training; also sets events.
start_elastic() {
  start_training "$@" && events=$work/sailor-$job/events.jsonl
}

events=
# The number of events with this name.
count_events() {
  local count
  count=$(grep -c "\"event\":\"$1\"" "$events" 2>/dev/null) || true
  echo "${count:-0}"
}
more_events() { [ "$(count_events "$1")" -gt "$2" ]; }  # NAME THAN
steps_lost() { grep -o '"steps_lost":[0-9]*' "$events" | awk -F: '{ sum += $2 } END { print sum + 0 }'; }  # in all changes
last_event() { grep "\"event\":\"$1\"" "$events" | tail -1; }
# field EVENT-LINE KEY: a number, word or boolean at the top of the line.
field() { sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$1"; }

node_of_pid() { tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n 's/^SLURMD_NODENAME=//p'; }
# The ranks of this cluster's job, "PID NODE", one per line, oldest first.
ranks() {
  local pid
  for pid in $(pids_of sailor-rank | sort -n); do echo "$pid $(node_of_pid "$pid")"; done
}
# The ranks that the current plan uses.
working_ranks() {
  last_event running | sed 's/.*"kept":/"kept":/' | grep -o '"node":"[^"]*","gpu":[0-9]*,"pid":[0-9]*' |
    sed 's/"node":"\([^"]*\)","gpu":[0-9]*,"pid":\([0-9]*\)/\2 \1/'
}
# Nodes of the current plan except the controller's; the first process on a node.
nodes_in_use() { working_ranks | awk -v mine="$controller_node" '$2 != mine { print $2 }' | sort -u; }
all_ranks_there() { [ "$(pids_of sailor-rank | wc -l)" = "$1" ]; }
working_rank_on() { working_ranks | awk -v node="$1" '$2 == node { print $1; exit }'; }

# kill_nodes NODE...: power off: all processes of the nodes and their slurmd at once. Sets killed_at, because finding them takes a while.
kill_nodes() {
  local node pid parent victims=()
  for node; do
    for pid in $(pids_of sailor-rank) $(pids_of sailor-agent) $([ -z "${program:-}" ] || programs); do
      [ "$(node_of_pid "$pid")" = "$node" ] || continue
      victims+=("$pid")
      # Also its Slurm step, so that nothing reports the fault.
      parent=$(ps -o ppid= -p "$pid" | tr -d ' ') || continue
      [[ "$(cat "/proc/$parent/comm")" != slurmstepd* ]] || victims+=("$parent")
    done
    victims+=("$(cat "$SAILOR_CLUSTER_DIR/run/slurmd.$node.pid")")
  done
  killed_at=$(now)
  # Stopped first, so that none sees another one end.
  kill -STOP "${victims[@]}" 2>/dev/null || true
  kill -9 "${victims[@]}" 2>/dev/null || true
}
# The processes of another trainer's program ($program) in this cluster, oldest first; on one node of it.
programs() {
  local pid
  for pid in $(pgrep -f "$program"); do
    if [[ "$(cat "/proc/$pid/comm" 2>/dev/null)" == python* ]] && grep -qsF "SLURM_CONF=$SLURM_CONF" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}
programs_on() {
  local pid
  for pid in $(programs); do [ "$(node_of_pid "$pid")" != "$1" ] || echo "$pid"; done
}
no_programs() { [ -z "$(programs)" ]; }
# power_off NODE RANKS: kill_nodes NODE, where the program must have this number of ranks.
power_off() {
  expect "it has ranks on $1" equal "$(programs_on "$1" | wc -l)" "$2"
  kill_nodes "$1"
}
# Restarts the nodes' slurmd, but not the processes that ran there.
revive_nodes() {
  local node
  for node; do slurmd -N "$node" >/dev/null 2>&1 </dev/null; done
}

# Of the job $job: how many times Slurm has requeued it; whether it was once.
restarts() { scontrol show job -o "$job" | grep -o 'Restarts=[0-9]*' | cut -d= -f2; }
started_again() { [ "$(restarts)" = 1 ]; }

# No change of plan is in progress: for a second, because newly started processes have not joined yet.
changes() { grep -o '"event":"\(joined\|running\|interrupt\|resumed\)"' "$events"; }
at_rest() {
  local before
  before=$(changes)
  [ "$(tail -1 <<<"$before")" = '"event":"resumed"' ] && sleep 1 && [ "$(changes)" = "$before" ]
}

# elapsed COMMAND...: its duration in seconds, with one decimal.
now() { date +%s.%N; }
seconds_since() { awk "BEGIN { printf \"%.1f\", $(now) - $1 }"; }

