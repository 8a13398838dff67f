#!/usr/bin/env bash
# Fuzzes readers of files, messages and connections, and planning from files. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/fuzz/run.sh PROGRAM WORK_DIR [TARGET...]

Runs PROGRAM (fuzz_planner, fuzz_data or fuzz_jobs) on every target, or on those named, and exits with 1 when one of them crashed, hung or
ran out of memory. The input is then in WORK_DIR/found, and the command that reproduces it is printed. Corpora are
kept in WORK_DIR/corpus, so that a later run continues from there.

Environment: SAILOR_FUZZ_MINUTES  CPU minutes for each target (default 30), in up to eight runs;
                                 there are as many at once as the machine has cores
             SAILOR_FUZZ_SEED     seed of the mutations (default: a new one, which is printed)
USAGE
}

case ${1:-} in -h | --help) usage; exit 0 ;; esac
(($# >= 2)) || { usage >&2; exit 2; }
program=$(realpath "$1")
work=$2
shift 2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
golden=$here/../golden
minutes=${SAILOR_FUZZ_MINUTES:-30}
seed=${SAILOR_FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
most_rounds=8
targets=("$@")
if ((${#targets[@]} == 0)); then mapfile -t targets < <("$program"); fi
mkdir -p "$work/found"
work=$(realpath "$work")

add() {  # FILE...: into the folder of seeds; names need not differ
  local file
  for file in "$@"; do cp "$file" "$to/$(find "$to" -type f | wc -l)-${file##*/}"; done
}
# The first inputs of a target: the files of the golden tests, right and broken, and inputs that were once found.
seeds() {  # TARGET FOLDER
  local target=$1 to=$2 file
  rm -rf "$to"
  mkdir -p "$to"
  case $target in
    snapshot) add "$golden"/fixtures/snapshot.yaml "$golden"/broken/snapshot-* ;;
    layer_profile) add "$golden"/fixtures/profiles/quick.json "$golden"/broken/profile-* ;;
    network_profile) add "$golden"/fixtures/profiles/network.json "$golden"/broken/network-* ;;
    json_parts) add "$golden"/fixtures/profiles/*.json "$golden"/fixtures/plan.json ;;
    job_spec) add "$golden"/fixtures/job.yaml "$golden"/broken/job-*.yaml "$here"/../../etc/jobs/*.yaml ;;
    model_config) add "$here"/../unit/trainer/checkpoint/golden/*/config.json ;;
    safetensors)
      local header='{"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}}'
      printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s%026d" "$header" 0 > "$to/two"
      printf '\x02\0\0\0\0\0\0\0{}' > "$to/none"
      ;;
    catalog) add "$golden"/fixtures/catalog.yaml "$golden"/broken/catalog-* "$here"/../../etc/catalog.yaml ;;
    site_config) add "$golden"/fixtures/sailor.yaml "$golden"/broken/site-* ;;
    plan) add "$golden"/fixtures/plan.json "$golden"/broken/plan-* ;;
    measured_run)
      add "$golden"/broken/run-*
      for file in "$golden"/fixtures/runs/*; do head -n 1 "$file" > "$to/${file##*/}"; done
      ;;
    trace) add "$golden"/fixtures/traces/* ;;
    assumptions)
      bundle framework.yaml "$golden"/fixtures/assumptions/frameworks/plain.yaml \
        platform.yaml "$golden"/fixtures/assumptions/platforms/hall.yaml \
        calibration.json "$golden"/fixtures/assumptions/calibration.json > "$to/fixtures"
      bundle framework.yaml "$here"/../../etc/frameworks/sailor.yaml > "$to/own"
      ;;
    planning)
      for job in "$golden"/fixtures/job.yaml "$golden"/broken/job-other-model.yaml; do
        bundle job.yaml "$job" sailor.yaml "$golden"/fixtures/sailor.yaml catalog.yaml "$golden"/fixtures/catalog.yaml \
          snapshot.yaml "$golden"/fixtures/snapshot.yaml profiles/quick.json "$golden"/fixtures/profiles/quick.json \
          profiles/network.json "$golden"/fixtures/profiles/network.json > "$to/${job##*/}"
      done
      ;;
    # Of fuzz_data, and in seeds/.
    mds)
      for file in "$golden"/fixtures/mds/*/*.mds; do   # binary: without a line end behind it
        { bundle index.json "${file%/*}/index.json" | sed '$d'; printf '\n=== shard.00000.mds\n'; cat "$file"; } > "$to/$(basename "${file%/*}")-${file##*/}"
      done
      ;;
    jsonl)
      printf '{"id": 1, "text": "one\\n\\u00e9\\ud83d\\ude00 two"}\r\n\n   \n{"text": ""}\n{"text": "last", "meta": {"text": [3, null]}}' > "$to/texts"
      printf '{"prompt": "a question: ", "completion": "its answer"}\n{"prompt": "", "completion": "x"}\n' > "$to/examples"
      ;;
    text) printf 'first line\n  second  line,\twith  spaces \n\n\nthird \xf0\x9f\x98\x80 \xe5\xb8\x86\xe8\x88\xb9\n' > "$to/lines" ;;
    tokenizer_json)
      for file in "$here"/../unit/tokenize/golden/*.json; do
        { echo '=== tokenizer.json'; sed 's/^{"tokenizer"://; s/,"cases":.*//' "$file"; printf "\n=== text\n <s>It's 12 na\xc3\xafve \xe5\xb8\x86 "; } > "$to/${file##*/}"
      done
      ;;
    chat_template)
      cat > "$to/chatml" <<'TEMPLATE'
=== template
{%- set ns = namespace(last=0) %}
{% for message in messages %}
{%- if not loop.first and message['role'] not in ["user", "assistant"] %}{{ raise_exception('no ' ~ message.role) }}{% endif %}
{{- '<|im_start|>' + message.role + '\n' }}{% if message.role == 'assistant' %}{% generation %}{{ message.content | trim }}<|im_end|>{% endgeneration %}
{% else %}{{ message.content.split('</think>')[-1].lstrip() }}<|im_end|>{% set ns.last = loop.index0 %}
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}
=== record
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}
TEMPLATE
      cat > "$to/tools" <<'TEMPLATE'
=== template
{% macro turn(role, text='') -%}[{{ role | upper }}]{{ text }}[/{{ role }}]{%- endmacro %}
{{ bos_token }}{% if tools is defined %}{{ tools | tojson(indent=2) }}{% endif %}{% for m in messages if m.content is string %}{{ turn(m.role, m.content) }}
{%- elif m.tool_calls %}{% for call in m.tool_calls %}{{ call.function.name }}({{ call.function.arguments | items | map('join', '=') | join(', ') }}){% endfor %}
{% else %}{{ loop.length }}{% endfor %}
=== record
{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]}], "tools": [{"name": "f"}]}
TEMPLATE
      ;;
    # Of fuzz_jobs, and in seeds/.
    run_directory)
      local run=$golden/fixtures/sailor-42
      bundle plan.json "$run/plan.json" metrics.jsonl "$run/metrics.jsonl" events.jsonl "$run/events.jsonl" \
        summary.json "$run/summary.json" > "$to/sailor-42"
      ;;
    nsys_report) add "$golden"/fixtures/traces/nsys-step.csv ;;
    setup_cache)
      printf '{"version": 1, "read_at": 1000, "partitions": [{"name": "p", "up": true, "is_default": true, "whole_nodes": false, "root_only": false, "needs_reservation": false, "allowed_accounts": [], "denied_accounts": ["a"], "allowed_qos": [], "denied_qos": [], "max_nodes": 4, "max_time_s": 60.5, "qos": "", "billing_weights": "CPU=1", "memory_per_cpu_mb": 1, "memory_per_node_mb": 0, "nodes": ["a1", "a2"]}], "reservations": [{"name": "r", "start": 1, "end": 2, "nodes": ["a1"], "partition": ""}], "leaf_switches": {"a1": "s1"}}' > "$to/one"
      ;;
    job_secrets) printf '%40s\n%064d\nencrypted\n' x 0 | tr ' ' x > "$to/secrets" ;;
    shard)
      printf '{"name": "rank-0", "bytes": 8, "checksums": "10f06b2a38d3ba736668f3da0ba6f790", "pieces": [["0.a", "F32", 0, 2, 0]]}' > "$to/one"
      ;;
    handshake | data_connection) printf 'SAILOR\x01\n\0\0\0\0\x01\0\0\0\x05\0\x04\0%064d' 0 > "$to/hello" ;;
    sealed_stream) for change in '\0' '\x01'; do printf "\x85\0\0\0$change%0300d" 0 > "$to/${change:1}"; done ;;
    foreign_stream) printf '\x08\0\0\0%024d' 0 > "$to/frame" ;;
  esac
  if [[ -d $here/seeds/$target ]]; then add "$here/seeds/$target"/*; fi
}
bundle() {  # NAME FILE...
  while (($#)); do
    echo "=== $1"
    cat "$2"
    echo
    shift 2
  done
}

# Prints a line, and fails if the target did.
fuzz() {  # TARGET
  local target=$1 corpus=$work/corpus/$1 log=$work/$1.log code=0
  mkdir -p "$corpus"
  seeds "$target" "$work/seeds/$target"
  # libFuzzer counts real time. Further runs give what other processes, or waiting, took of it.
  local cpu_s=0 left_s runs=0 TIMEFORMAT='%U %S' round
  for ((round = 0; code == 0 && round < most_rounds; ++round)); do
    left_s=$(awk -v m="$minutes" -v used="$cpu_s" 'BEGIN {print int(60 * m - used + 0.5)}')
    ((left_s > 0)) || break
    # An input is given ten seconds and a gigabyte: a program of this kind answers within a second on a few MB.
    { time "$program" "--target=$target" -seed=$((seed + round)) -max_total_time="$left_s" -timeout=10 -rss_limit_mb=1024 -max_len=20000 \
      -artifact_prefix="$work/found/$target-" -print_final_stats=1 "$corpus" "$work/seeds/$target" > "$log" 2>&1; } 2> "$log.time" || code=$?
    cpu_s=$(awk -v used="$cpu_s" 'END {print used + $1 + $2}' "$log.time")
    runs=$((runs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | grep . || echo 0)))
  done
  rm -f "$log.time"
  local rss cover
  rss=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  cover=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1 || true)
  echo "$target: $runs inputs, ${cover:-cov: ?} edges, ${rss:-?} MB, $(awk -v s="$cpu_s" 'BEGIN {printf "%.1f", s / 60}') CPU minutes:" \
    "$( ((code == 0)) && echo ok || echo FAILED)"
  ((code != 0)) || return 0
  grep -E '^BROKEN|ERROR: |SUMMARY|runtime error|terminate called|what\(\)|Test unit written' "$log" | sed 's/^/  /' | head -n 12
  echo "  again: $program --target=$target $(ls -t "$work/found/$target-"* 2> /dev/null | head -n 1)"
  return 1
}

echo "seed $seed, $minutes CPU minutes for each of ${#targets[@]} targets"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=0 running=0
for target in "${targets[@]}"; do
  if ((running == $(nproc))); then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
for (( ; running > 0; --running)); do wait -n || failed=1; done
exit "$failed"
