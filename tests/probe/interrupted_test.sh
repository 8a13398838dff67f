#!/usr/bin/env bash
# A probe that is killed, or that runs out of disk, leaves a complete file with its measurements; the next one continues from there.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
for tool in mpirun python3; do command -v $tool > /dev/null || skip "there is no $tool"; done
mounted=
clean_up() { [ -z "$mounted" ] || umount "$mounted" || true; }
probe() { "$bin/sailor-probe" --ranks 2 "$@"; }

# kill -9 of the rank that keeps the file, the third time of its launcher, each time after something new was measured.
profile=$work/killed/network.json
before=0
for round in 1 2 3; do
  probe --max-bytes 64MiB --seconds 40 --out "$work/killed" > "$work/log" 2>&1 &
  shell=$!
  for ((i = 0; i < 1200; ++i)); do
    [ ! -s "$profile" ] || [ "$(measurements "$profile")" -lt $((before + 2)) ] || break
    sleep 0.05
  done
  # The function runs in a shell of its own. The ranks are the launcher's children; the first was started first.
  launcher=$(pgrep -P $shell)
  ranks=$(ps -o pid= --ppid "$launcher" --sort pid)
  [ $round = 3 ] && killed=$launcher || killed=$(head -1 <<< "$ranks")
  kill -9 $killed || not_ok "round $round: process $killed was there to be killed"
  wait $shell 2> /dev/null && not_ok "round $round: a killed probe says that all is well"
  for ((i = 0; i < 200; ++i)); do ps -o pid= $ranks > /dev/null || break; sleep 0.05; done
  ps $ranks > /dev/null && not_ok "round $round: its ranks ended with it"
  "$bin/sailor-probe" --show "$profile" > /dev/null || not_ok "round $round: the file is whole"
  now=$(measurements "$profile")
  expect "round $round: $now measurements are there, $before before" [ "$now" -ge $((before + 2)) ]
  before=$now
done
expect "the next run ends" probe --max-bytes 64KiB --seconds 8 --out "$work/killed"
expect "all is measured: 3 sizes of messages and of 4 collectives" [ "$(measurements "$profile" 65536)" = 15 ]
expect "and what was there is kept" [ "$(measurements "$profile")" -ge "$before" ]

if [ "$UID" = 0 ] && mkdir "$work/small" && mount -t tmpfs -o size=12k none "$work/small" 2> /dev/null; then
  mounted=$work/small
  profile=$work/small/network.json
  # Something else takes the room while the probe runs: the file and its successor no longer fit.
  rc=0
  head -c 4096 /dev/zero > "$work/small/other"
  probe --max-bytes 64KiB --seconds 3 --out "$work/small" > "$work/log" 2>&1 && probe --max-bytes 64KiB --seconds 3 --again --zone a-zone --out "$work/small" > "$work/log" 2>&1 &&
    probe --max-bytes 64KiB --seconds 3 --zone another-zone --out "$work/small" > "$work/log" 2>&1 || rc=$?
  expect "a full disk is an error of its own" [ $rc = 1 ]
  expect "and is said" grep -q "No space left on device" "$work/log"
  expect "the file is whole" "$bin/sailor-probe" --show "$profile"
  kept=$(measurements "$profile")
  expect "$kept measurements are kept" [ "$kept" -gt 0 ]
  rm "$work/small/other"
  mount -o remount,size=1m "$work/small"
  expect "with room again, the probe goes on" probe --max-bytes 64KiB --seconds 3 --zone another-zone --out "$work/small"
  expect "and keeps what was there" [ "$(measurements "$profile")" -gt "$kept" ]
else
  echo "skipped: a full disk (no tmpfs can be mounted)"
fi
finish
