#!/bin/bash
# Slurm passes the tests of all schedulers (tests/unit/planner/scheduler/interface_tests.h), as the site's scheduler of our programs.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# passes FILE COMMAND...: runs the command, which writes the output of the tests to FILE.
passes() {
  local printed=$1
  shift
  rc=0
  user timeout 400 "$@" >"$work/.out" 2>"$work/.err" </dev/null || rc=$?
  out=$(grep -vE '^\[ (RUN|      OK)|^\[-----' "$printed") err=$(cat "$work/.err")
  [ $rc = 0 ] && contains "$out" "  PASSED  "
}
expect "from outside a job" passes "$work/.out" scheduler_interface fast a1 a2
wait_idle
expect "from inside a job" passes inside.txt sbatch --wait --output=inside.txt -p fast -w a1 --time=10 --exclusive \
  --wrap "scheduler_interface fast a1 a2 --inside"
finish
