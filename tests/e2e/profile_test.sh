#!/bin/bash
# `sailor profile --on-nodes`: one job per GPU type, concurrently, into one directory. Types without a free node are reported. An
# interruption ends the jobs and keeps the measurements, and the next run continues from there.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir -m 777 profiles
cat >sailor.yaml <<'YAML'
sailor_site: 1
catalog: catalog.yaml
profiles: [profiles]
gres: {a100: A100-40, v100: V100-16, t4: T4-16}
default_zone: {zone: dev-a, region: dev}
YAML
# T4-16 is measured as the type that emulates it, the others as themselves.
cat >catalog.yaml <<'YAML'
sailor_catalog: 1
gpu_types:
  A100-40: {memory: 4GiB, usd_per_hour: 3.67}
  V100-16: {memory: 2GiB, usd_per_hour: 2.48}
  T4-16: {memory: 2GiB, emulate: {profile: cpu, slowdown: 75}, usd_per_hour: 0.35}
YAML
chmod a+r sailor.yaml catalog.yaml
export SAILOR_CONFIG=$work/sailor.yaml
small=(--microbatches 1 --tp 1 --ranks 1)
types() { ls profiles/*.json 2>/dev/null | sed 's/.*fp32\.\(.*\)\.json/\1/' | paste -sd' '; }

run sailor profile --on-nodes "${small[@]}" --seconds 2 tiny.yaml
expect "it ends well" equal "$rc" 0
expect "a profile of every type" equal "$(types)" "A100-40 V100-16 cpu"
for node in a1 v1 t1; do expect "one node of each type: $node" contains "$err" "measured on $node"; done
expect "what a node prints is marked" contains "$err" "a1: microbatch   1  tp 1"
expect "links are not the business of a node" test ! -e profiles/network.json
run sailor profile --show profiles/*A100-40.json
expect "the profile is readable" contains "$out" "GPU type   A100-40"
wait_idle

scontrol update nodename=v[1-2] state=drain reason=test
restore() { scontrol update nodename=v[1-2] state=resume 2>/dev/null || true; }
rm profiles/*
run sailor profile --on-nodes "${small[@]}" --seconds 2 tiny.yaml
expect "the others are measured" equal "$rc $(types)" "0 A100-40 cpu"
restore
wait_idle

run sailor profile --on-nodes --gpu-type V100-16 tiny.yaml
expect "the type cannot be said: it is that of the node" equal "$rc" 2
run sailor profile --on-nodes absent.yaml
expect "a mistake is told once, before any job" equal "$rc $(wc -l <<<"$err")" "2 1"

# An interruption while jobs measure.
rm -f profiles/*
user env SAILOR_CONFIG="$SAILOR_CONFIG" sailor profile --on-nodes "${small[@]}" --seconds 100 tiny.yaml >/dev/null 2>interrupted.log &
waiting=$!
# Found by its name, because there may be a runuser between this shell and the program.
profiler_pid() { pgrep -f -x ".*sailor-profile --on-nodes ${small[*]} --seconds 100 tiny.yaml"; }
rounds() { ls profiles/.*.unfinished 2>/dev/null | wc -l; }
three_jobs_measure() { [ "$(rounds)" = 3 ] && [ "$(cat profiles/.*.unfinished | wc -l)" -gt 6 ]; }
expect "three jobs measure" wait_until 60 three_jobs_measure
kill -TERM $(profiler_pid)
code=0; wait $waiting || code=$?
err=$(cat interrupted.log)
expect "an interruption is a failure" equal "$code" 1
expect "which says that nothing is lost" contains "$err" "finished measurements are kept"
expect "and ends the jobs" wait_until 30 no_jobs
expect "the profiles so far can be read" equal "$(for f in profiles/*.json; do sailor profile --show "$f" >/dev/null; echo $?; done | sort -u)" 0
run sailor profile --on-nodes "${small[@]}" --seconds 2 tiny.yaml
expect "the next run ends well" equal "$rc" 0
expect "nothing is unfinished" equal "$(rounds)" 0
wait_idle

# One of the jobs is cancelled: the others succeed.
rm -f profiles/*
user env SAILOR_CONFIG="$SAILOR_CONFIG" sailor profile --on-nodes "${small[@]}" --seconds 15 tiny.yaml >/dev/null 2>cancelled.log &
waiting=$!
expect "three jobs measure" wait_until 60 three_jobs_measure
scancel "$(squeue -h -w v1 -o %A)"
code=0; wait $waiting || code=$?
err=$(cat cancelled.log)
expect "a cancelled job is a failure" equal "$code" 1
expect "which names its type" contains "$err" "V100-16"
expect "the others are measured" equal "$(ls profiles/*A100-40.json profiles/*cpu.json | wc -l)" 2
expect "and what the cancelled one measured is kept" equal "$(rounds)" 1
run sailor profile --on-nodes "${small[@]}" --seconds 2 tiny.yaml
expect "the next run ends well" equal "$rc $(types)" "0 A100-40 V100-16 cpu"
expect "nothing is unfinished" equal "$(rounds)" 0
finish
