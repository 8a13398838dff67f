#!/bin/bash
# A training job that is cancelled, or loses a rank, a node's agent or its controller, ends as a whole: no process remains, no file is
# incomplete, and one line has the fault and its location.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

setup_training 100000

# training WHAT: a job that has completed three steps. If there is none, the test ends.
training() {
  if start_training && wait_until 60 steps_done 3; then ok "$1: training"; return; fi
  not_ok "$1: training"
  scontrol show job "$job" || true
  training_processes
  cat "$output" || true
  exit 1
}
gone() {  # WHAT SECONDS
  expect "$1: no process is left" wait_until "$2" no_training_processes
  training_processes
  wait_until 30 job_ended "$job" || not_ok "$1: the job ends"
  expect "$1: files are whole" whole_files
}
last_error() { grep '^sailor: ' "$output" || true; }

training "scancel"
scancel "$job"
gone "scancel" 10
expect "scancel: the summary says cancelled" equal "$(json "sailor-$job/summary.json" status)" cancelled
wait_idle

training "rank killed"
victim=$(pids_of sailor-rank | tail -1)
node=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^SLURMD_NODENAME=//p')
kill -9 "$victim"
gone "rank killed" 15
err=$(last_error)
expect "rank killed: one line" one_error "$err"
expect "rank killed: names rank, node and signal" grep -qE "rank [0-3] on $node \(pid $victim\) was killed by signal 9" <<<"$err"
expect "rank killed: exit code 1" contains "$(scontrol show job -o "$job" | head -1)" "ExitCode=1:0"
expect "rank killed: the summary says failed" equal "$(json "sailor-$job/summary.json" status)" failed
wait_idle

training "agent killed"
victim=$(pids_of sailor-agent | tail -1)
node=$(tr '\0' '\n' <"/proc/$victim/environ" | sed -n 's/^SLURMD_NODENAME=//p')
kill -9 "$victim"
gone "agent killed" 15
err=$(last_error)
expect "agent killed: one line" one_error "$err"
expect "agent killed: names the node" contains "$err" "$node"
wait_idle

training "controller killed"
wait_until 20 test -e "sailor-$job/trace-step-5.json" || true  # a file that is being written may stay incomplete
kill -9 "$(pids_of sailor-run)"
gone "controller killed" 25
wait_idle

training "controller hangs"
controller=$(pids_of sailor-run)
kill -STOP "$controller"
only_controller() { [ "$(training_processes | awk '{ print $2 }')" = sailor-run ]; }
expect "controller hangs: leases end all ranks and agents" wait_until 40 only_controller
kill -CONT "$controller" 2>/dev/null || true
gone "controller hangs" 25
wait_idle

# An mpirun that has started nothing when it fails.
printf '#!/bin/sh\n[ "$1" != --version ] || { echo "mpirun (Open MPI) 5.0.7"; exit 0; }\nexit 1\n' >broken-mpirun
chmod a+rx broken-mpirun
export SAILOR_MPIRUN=$work/broken-mpirun
training "mpirun fails"
unset SAILOR_MPIRUN
expect "mpirun fails: it says so" grep -q '^sailor: starting the ranks failed: the launcher ended with exit code 1' "$output"
expect "mpirun fails: the ranks were started without it" has_text "$output" '^sailor: starting the ranks again, without mpirun'
scancel "$job"
gone "mpirun fails" 10
finish
