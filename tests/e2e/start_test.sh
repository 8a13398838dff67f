#!/bin/bash
# Start now or wait: on a full cluster jobs queue for the nodes that end them first, and start when they said. Deadlines; what stays as it was.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

restore() { scancel -u "$SAILOR_CLUSTER_USER" 2>/dev/null || true; }
# others PARTITION NODES: a job of another user that runs until its time limit of a minute.
others() { run sbatch -p "$1" -w "$2" --exclusive -t 1 -o /dev/null --wrap 'sleep 58'; }
planned() { run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -t 5 -o /dev/null "$@" body.sh; }
seconds() { sed -n 's/.*starts: wait \([0-9]*\) \(s\|min\) for.*/\1 \2/p' <<<"$1" | awk '{ print $2 == "s" ? $1 : 60 * $1 }'; }
started_in() { # JOB SINCE: seconds
  local at
  at=$(scontrol show job -o "$1" | sed -n 's/.* StartTime=\([^ ]*\).*/\1/p')
  echo $(($(date -d "$at" +%s) - $2))
}
running() { [ "$(squeue -h -j "$1" -o %T)" = RUNNING ]; }

touch go # bodies end at once
others fast a1,a2
others medium v1,v2
others small t1,t2
first=$(last_job)
wait_until 20 running "$first"
others small t1,t2 # waits, and comes before a new job
declare -A stated=() since=() job_of=()
for partition in fast medium small; do
  since[$partition]=$(date +%s)
  planned -p $partition
  expect "$partition is full: the job queues" equal "$rc" 0
  expect "$partition: it says when it starts and ends" contains "$err" "starts: wait "
  expect "$partition: in the table too" contains "$err" " START "
  stated[$partition]=$(seconds "$err")
  job_of[$partition]=$(sed -n 's/^Submitted batch job //p' <<<"$out")
done
expect "behind the queue the wait is longer" test "${stated[small]}" -gt $((${stated[fast]} + 30))

# While it is full:
planned -p fast --sailor-wait=none
expect "--sailor-wait=none: exit 3" equal "$rc $(one_error "$err" && echo one)" "3 one"
planned -p fast --sailor-wait=1s
expect "--sailor-wait=1s: exit 3" equal "$rc $(one_error "$err" && echo one)" "3 one"
planned -p fast --sailor-wait=plan
expect "--sailor-wait=plan: exit 3, and what to do" contains "$rc $err" "wait for them with --sailor-wait"
planned -p fast --sailor-deadline=now+10s
expect "a deadline that nothing meets: exit 3" equal "$rc $(one_error "$err" && echo one)" "3 one"
expect "it has the earliest end" contains "$err" "the earliest: wait "

for partition in fast medium small; do
  id=${job_of[$partition]}
  wait_until 200 eval '! squeue -h -j '"$id"' -o %T 2>/dev/null | grep -q PENDING'
  real=$(started_in "$id" "${since[$partition]}")
  error=$((real - ${stated[$partition]}))
  echo "$partition: stated ${stated[$partition]} s, real $real s"
  expect "$partition: it started when it said, to 30 s" test ${error#-} -le 30
done
wait_idle
planned --sailor-dry-run
expect "on an idle cluster it starts now" contains "$err" " now "
expect "and there is nothing to choose" equal "$(grep -c '^starts:' <<<"$err" || true)" 0
planned --sailor-dry-run --sailor-deadline=now+1h
expect "a far deadline takes the cheapest nodes" equal "$rc $(nodes_of_command "$out")" "0 t1 t2"
finish
