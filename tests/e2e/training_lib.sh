# Shared by the training tests (sourced after lib.sh): a small job with a profile, a plan over two partitions with two TP degrees and
# different pipelines, and the processes of a training job.

# The processes of this cluster's training jobs: "PID NAME", one per line.
training_processes() {
  local pid
  for pid in $(pgrep '^sailor-'); do
    if grep -qsF "SLURM_CONF=$SLURM_CONF" "/proc/$pid/environ"; then echo "$pid $(cat "/proc/$pid/comm" 2>/dev/null || true)"; fi
  done
}
pids_of() { training_processes | awk -v name="$1" '$2 == name { print $1 }'; }
no_training_processes() { [ -z "$(training_processes)" ]; }

# Text with some structure: sentences of common words, always the same ones.
make_text() {
  awk 'BEGIN {
    srand(7); n = split("the cat sat on a mat and then it saw some other cats that were not as fat", word, " ");
    for (i = 0; i < 20000; i++) printf "%s%s", word[1 + int(rand() * n)], (i % 9 == 8 ? ".\n" : " ");
  }'
}

# entropy FILE: unigram entropy of its characters, in nats: the loss of a model that only knows their frequencies.
entropy() {
  od -An -v -tu1 -w1 "$1" | awk '{ n[$1]++ } END { for (c in n) h -= n[c] / NR * log(n[c] / NR); print h }'
}

# setup_training STEPS: job.yaml, text.txt, held_out.txt and plan.json in the work directory, and a profile.
setup_training() {
  make_text >all.txt
  head -c -4000 all.txt >text.txt
  tail -c 4000 all.txt >held_out.txt
  cat >job.yaml <<YAML
#!/usr/bin/env -S sailor run
#SBATCH --job-name=training --time=00:10:00
model: {family: gpt2, layers: 4, hidden: 32, heads: 4, sequence: 32, vocabulary: 256}
training:
  global_batch: 8
  steps: $1
  optimizer: {name: adamw, lr: 5.0e-3, beta2: 0.98}
  schedule: {name: cosine, warmup_steps: 5, min_lr: 1.0e-3}
  clip_grad_norm: 1.0
  validation: {every_steps: 20, sequences: 12}
data: {train: text.txt, format: bytes, validation: held_out.txt}
metrics: {trace_step: 5}
YAML
  # Ranks: 0, 1 on a1; 2 on v2; 3 on a2. TP 2 and TP 1, pipelines of two stages and of one, two partitions.
  cat >plan.json <<'JSON'
{"sailor_plan": 1, "model": "gpt2-4x32", "global_batch": 8, "microbatch": 2,
 "pipelines": [
  {"microbatches": 2, "stages": [
    {"layers": [0, 3], "gpu_type": "A100-40", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "a1", "gpus": [0, 1]},
    {"layers": [3, 6], "gpu_type": "V100-16", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "v2", "gpus": [0]}]},
  {"microbatches": 2, "stages": [
    {"layers": [0, 6], "gpu_type": "A100-40", "zone": "dev-a", "tp": 1, "recompute": "none", "node": "a2", "gpus": [3]}]}],
 "zero1": false, "interleave": 1}
JSON
  chmod a+r job.yaml plan.json text.txt held_out.txt
  use_profile fp32
}

# A profile of the model of these tests, in the planner's directory, under the name that `sailor profile` gives it. Its times do not depend on
# the load of this machine.
use_profile() {  # PRECISION
  local file=$SAILOR_CLUSTER_DIR/profiles/gpt2-32x4x128-s32-v256-$1.cpu.json
  sed "s/fp64/$1/" "$e2e/fixtures/small_profile.json" >"$file"
  chmod a+r "$file"
}

# measure_profile JOB [OPTIONS]: of this machine.
measure_profile() {
  user sailor profile "$@" >"$work/profile.log" 2>&1 || { cat "$work/profile.log"; echo "NOT OK: profiled"; exit 1; }
}

# The job that the last `run sbatch` has submitted.
job_submitted() { sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' <<<"$out"; }
# start_training [SBATCH OPTIONS]: submits job.yaml with plan.json; sets job and output.
start_training() {
  run sbatch --sailor-plan=plan.json --sailor-objective=throughput "$@" job.yaml
  job=$(job_submitted)
  output=$work/slurm-$job.out
  [ -n "$job" ]
}
steps_done() { [ -e "sailor-$job/metrics.jsonl" ] && [ "$(wc -l <"sailor-$job/metrics.jsonl")" -ge "$1" ]; }
job_ended() { scontrol show job -o "$1" | head -1 | grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|NODE_FAIL)'; }
# json FILE KEY: a top-level number or string.
json() { sed -n "s/^  \"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1"; }
# Every line of the metrics is a complete JSON object, and no temporary files remain.
whole_files() {
  [ -z "$(find "sailor-$job" -name '*.tmp*')" ] || { find "sailor-$job"; return 1; }
  ! grep -qv '^{.*}$' "sailor-$job/metrics.jsonl" || { cat "sailor-$job/metrics.jsonl"; return 1; }
  [ ! -e "sailor-$job/summary.json" ] || grep -q '^}$' "sailor-$job/summary.json"
}
# Every step of both runs used the same data, and its losses agree to TOLERANCE (relative); at least LEAST steps.
same_losses() {  # METRICS.csv METRICS.csv TOLERANCE LEAST
  awk -F, -v tolerance="$3" -v least="$4" '
    FNR == 1 { for (i = 1; i <= NF; i++) { if ($i == "loss") column = i; if ($i == "data_digest") data = i }; next }
    NR == FNR { loss[$1] = $column; saw[$1] = $data; next }
    $1 in loss && $data != saw[$1] { printf "  step %s saw other data: %s, not %s\n", $1, $data, saw[$1]; others++ }
    $1 in loss { d = ($column - loss[$1]) / loss[$1]; if (d < 0) d = -d; if (d > worst) { worst = d; at = $1 } n++ }
    END { printf "  %d steps compared, largest difference %.1e at step %d\n", n, worst, at; exit !(n >= least && worst <= tolerance && !others) }' "$1" "$2"
}
