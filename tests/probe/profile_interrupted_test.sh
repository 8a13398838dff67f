#!/usr/bin/env bash
# A layer profile whose measurement is killed, or runs out of disk: finished measurements are kept, and the next run continues from there.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mounted=
running=
clean_up() {
  [ -z "$running" ] || kill -9 "$running" 2> /dev/null || true
  [ -z "$mounted" ] || umount "$mounted" || true
}
cat > "$work/job.yaml" <<'YAML'
model: {family: gpt2, layers: 2, hidden: 32, heads: 2, sequence: 32, vocabulary: 64}
training: {global_batch: 8, precision: fp32, steps: 1, optimizer: {name: adamw, lr: 1.0e-3}}
data: {train: /dev/null, format: bytes}
YAML
profile() { # DIRECTORY SECONDS
  "$bin/sailor-profile" --layers-only --ranks 1 --tp 1 --microbatches 1,2,4 --seconds "$2" --out "$1" "$work/job.yaml"
}
journal_of() { ls "$1"/.*.unfinished 2> /dev/null; }
rounds() { { cat "$1"/.*.unfinished 2> /dev/null || true; } | grep -c '"kinds"' || true; }

# kill -9, again and again, each time after something new was measured.
mkdir "$work/killed"
before=0
for round in 1 2 3; do
  profile "$work/killed" 300 > "$work/log" 2>&1 &
  running=$!
  for ((i = 0; i < 400 && $(rounds "$work/killed") < before + 3; ++i)); do sleep 0.05; done
  # The function runs in a shell of its own.
  pkill -9 -P $running || kill -9 $running
  wait $running 2> /dev/null && not_ok "round $round: a killed profile says that all is well"
  running=
  now=$(rounds "$work/killed")
  expect "round $round: $now rounds are there, $before before" [ "$now" -ge $((before + 3)) ]
  before=$now
done
profile "$work/killed" 2 > "$work/log" 2>&1 || not_ok "the next run ends: $(cat "$work/log")"
expect "nothing is unfinished" [ -z "$(journal_of "$work/killed")" ]

if [ "$UID" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=12k none "$work/small" 2> /dev/null; then
  mounted=$work/small
  rc=0
  profile "$work/small" 300 > "$work/log" 2>&1 || rc=$?
  expect "a full disk is an error of its own" [ $rc = 1 ]
  expect "and is said" grep -q "No space left on device" "$work/log"
  expect "in one line" [ "$(grep -c '^sailor: ' "$work/log")" = 1 ]
  kept=$(rounds "$work/small")
  expect "$kept rounds are kept" [ "$kept" -gt 3 ]
  mount -o remount,size=1m "$work/small"
  profile "$work/small" 2 > "$work/log" 2>&1 || not_ok "with room again, it goes on: $(cat "$work/log")"
  expect "the profile is whole" "$bin/sailor-profile" --show "$work"/small/*.json
else
  echo "skipped: a full disk (no tmpfs can be mounted)"
fi
finish
