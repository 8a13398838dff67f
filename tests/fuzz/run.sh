#!/usr/bin/env bash
# Fuzzes all file readers, and planning from files, for a given total time. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/fuzz/run.sh PROGRAM WORK_DIR [TARGET...]

Runs PROGRAM (fuzz_planner or fuzz_data) on every target, or on those named, and exits with 1 when one of them crashed, hung or
ran out of memory. The input is then in WORK_DIR/found, and the command that reproduces it is printed. Corpora are
kept in WORK_DIR/corpus, so that a later run continues from there.

Environment: SAILOR_FUZZ_MINUTES  CPU minutes for all targets together (default 30)
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

# Planning has most code behind it: it counts as four targets.
share_of() { if [[ $1 == planning ]]; then echo 4; else echo 1; fi; }
shares=0
for target in "${targets[@]}"; do shares=$((shares + $(share_of "$target"))); done
echo "seed $seed, $minutes CPU minutes for ${#targets[@]} targets"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
failed=0
for target in "${targets[@]}"; do
  corpus=$work/corpus/$target
  mkdir -p "$corpus"
  seeds "$target" "$work/seeds/$target"
  seconds=$(awk -v m="$minutes" -v s="$(share_of "$target")" -v all=$shares 'BEGIN {printf "%d", 60 * m * s / all + 0.5}')
  log=$work/$target.log
  # An input is given ten seconds and a gigabyte: a program of this kind answers within a second on a few MB.
  code=0
  "$program" "--target=$target" -seed="$seed" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -max_len=20000 -artifact_prefix="$work/found/$target-" -print_final_stats=1 \
    "$corpus" "$work/seeds/$target" > "$log" 2>&1 || code=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  rss=$(sed -n 's/^stat::peak_rss_mb: *//p' "$log")
  cover=$(grep -oE 'cov: [0-9]+' "$log" | tail -n 1 || true)
  echo "$target: $seconds s, ${runs:-?} inputs, ${cover:-cov: ?} edges, ${rss:-?} MB: $( ((code == 0)) && echo ok || echo FAILED)"
  if ((code != 0)); then
    failed=1
    grep -E '^BROKEN|ERROR: |SUMMARY|runtime error|terminate called|what\(\)|Test unit written' "$log" | sed 's/^/  /' | head -n 12
    echo "  again: $program --target=$target $(ls -t "$work/found/$target-"* 2> /dev/null | head -n 1)"
  fi
done
# What the targets really got; less than was asked for when the machine was busy.
times > "$work/times"
awk 'NR == 2 {for (i = 1; i <= 2; ++i) {split($i, t, /[ms]/); s += 60 * t[1] + t[2]}; printf "%.1f CPU minutes used\n", s / 60}' "$work/times"
exit $failed
