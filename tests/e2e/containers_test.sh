#!/bin/bash
# The options of a container plugin reach everything that a planned job runs: the batch script, agents, launcher and ranks on the nodes of
# all components, a rank that is started again, and the helper job of a job that grows. Nothing of them runs outside the container.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" containers

record=$SAILOR_CLUSTER_DIR/containers.txt image=$SAILOR_CLUSTER_DIR/image
[ "$UID" = 0 ] || { echo "skipped: another root directory needs root"; exit 77; }
mkdir -p "$image"
echo "optional $SAILOR_BUILD_DIR/lib/spank_container.so record=$record" >>"$plugstack"
# Tasks outside the container of this job and later ones: its other components, its helpers.
outside() { awk -v job="$1" -v image="$image" '$1 >= job && $3 != image' "$record"; }
processes() { local name; for name in sailor-run sailor-agent sailor-rank; do pids_of $name; done; }
processes_outside() {
  local pid
  for pid in $(processes); do [ -e "/proc/$pid/root/mnt/IN_CONTAINER" ] || echo "$pid $(cat "/proc/$pid/comm")"; done
}
nodes_of_processes() { local pid; for pid in $(processes); do node_of_pid "$pid"; done | sort -u | paste -sd' '; }
all_inside() { # WHAT JOB
  expect "$1: every task is in the container" equal "$(outside "$2")" ""
  expect "$1: its processes see the container's root" equal "$(processes_outside)" ""
}

# A job over two partitions.
sed -i '/^umbrella_partition/d' "$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
setup_training 100000
printf 'elastic: {enabled: true}\n' >>job.yaml
run sbatch --container-image="$image" -o plain.out --wrap 'ls /mnt'
expect "the stand-in works" wait_until 30 has_text plain.out IN_CONTAINER
expect "a job over two partitions" start_training -p fast,medium --container-image="$image"
expect "has two components" equal "$(partitions_of_job "$job")" "fast medium"
expect "and trains" wait_until 60 steps_done 5
expect "on the nodes of both" equal "$(nodes_of_processes)" "a1 a2 v2"
all_inside "two components" "$job"
events=$work/sailor-$job/events.jsonl
running=$(count_events running)
kill -9 "$(pids_of sailor-rank | sort -n | tail -1)"
expect "a killed rank comes back" wait_until 60 all_ranks_there 4
# At once, if it is back before there is a plan without it.
takes_part() { more_events running "$running" && [ "$(field "$(last_event running)" ranks)" = 4 ]; }
expect "and takes part" wait_until 30 takes_part
all_inside "a rank started again" "$job"
scancel "$job"
expect "no process is left" wait_until 30 no_training_processes

# A helper job.
echo "umbrella_partition: all" >>"$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
setup_growth
run sbatch -p all -w a2,v1,v2,t1,t2 -N 5 --exclusive --container-image="$image" --wrap 'sleep 3600'
held=$(job_submitted)
run sbatch --sailor-objective=throughput --container-image="$image" job.yaml
job=$(job_submitted)
events=$work/sailor-$job/events.jsonl
expect "a job that may grow trains" wait_until 60 steps_done 5
scancel "$held"
expect "it grows" wait_until 90 more_events grew 0
expect "its new ranks train" wait_until 40 more_events resumed 0
expect "on a node of a helper job" test "$(nodes_of_processes | wc -w)" -ge 2
all_inside "a helper job" "$job"
scancel "$job"
expect "no process is left" wait_until 30 no_training_processes
finish
