#!/bin/bash
# The effect of every failure of the plugin, in every hook and every kind of process, under `optional` and `required`. Prints
#
#     hook,context,mode,fault,plain_rc,planned_rc,node_state
#
# context: allocator (sbatch), local (srun), remote (slurmstepd), job_script (prolog and epilog), slurmd.
# fault: throw, error: inside the plugin. unguarded: an error returned to Slurm, which the plugin never does, mostly in hooks that it does
# not have. missing, broken, other_release: the library itself (hook load), or the planner's library beside it (hook planner).
# plain_rc: exit code of a plain job (srun where the context is local, else sbatch); planned_rc: of one with a plan, where 9 means that it
# ran without its plan. Either may be "lost" (exit code 0, but it never ran) or "stuck" (not ended after 5 s).
# node_state: the worse one after the two jobs; "busy" when the node does not become idle, "gone" when it has no slurmd.
# Exits with 1 when a plain job fails or a node is not idle afterwards under `optional`, or when a guarded failure does so anywhere or
# lets a job run without its plan.
#
# --table prints the table of etc/doc/admin-guide.md, --check compares the results with it.
#
# usage: tests/spank_matrix.sh [--table | --check] [ROW-PATTERN]
#     ROW-PATTERN: only rows HOOK,CONTEXT,MODE,FAULT that match the extended regular expression
set -euo pipefail
umask 022
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
form=csv
case ${1:-} in --table | --check) form=${1#--}; shift ;; esac
pattern=${1:-}
build=${SAILOR_BUILD_DIR:-$root/build}
for plugin in spank_fault spank_fault_planner spank_other_release; do
  [ -f "$build/lib/$plugin.so" ] || { echo "sailor: tests/spank_matrix.sh: $build/lib/$plugin.so is not built" >&2; exit 1; }
done
export SAILOR_CLUSTER_DIR=$(mktemp -u "${TMPDIR:-/tmp}/sailor-matrix.XXXXXX")
trap '[ -z "${KEEP:-}" ] || cp -r "$SAILOR_CLUSTER_DIR/log" "$KEEP"; "$root/tests/cluster.sh" down >/dev/null 2>&1' EXIT
eval "$("$root/tests/cluster.sh" up --nodes 3 2>/dev/null)"
user() { if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- "$@"; else "$@"; fi; }

work=$SAILOR_CLUSTER_DIR/work
cd "$work"
plugins=$SAILOR_CLUSTER_DIR/plugins
mkdir "$plugins"
cp "$build/lib/spank_fault.so" "$plugins"
cp "$build/lib/spank_fault_planner.so" "$plugins/sailor_planner.so"
echo "not a library" >"$plugins/broken.so"
cp "$build/lib/spank_other_release.so" "$plugins/other_release.so"
cp "$root/tests/e2e/fixtures/tiny.yaml" "$work"
cp "$root/tests/e2e/fixtures/tiny_profile.json" "$SAILOR_CLUSTER_DIR/profiles"
cat >plan.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-6x64", "global_batch": 16, "microbatch": 2,
 "pipelines": [{"microbatches": 8, "stages": [
   {"layers": [0, 8], "gpu_type": "T4-16", "zone": "dev-a", "tp": 2, "recompute": "none", "node": "t1", "gpus": [0, 1]}]}],
 "zero1": false, "interleave": 1}
PLAN
printf '#!/bin/bash\n[ -n "$SLURM_SPANK_SAILOR_PLAN_0" ] || exit 9\necho ran\n' >planned.sh
chmod -R a+rX "$plugins" ./*.* "$SAILOR_CLUSTER_DIR/profiles"
printf '#!/bin/bash\necho ran\n' >plain.sh
chmod a+x planned.sh plain.sh
plan=(--sailor-plan=plan.json --sailor-job=tiny.yaml)

plugstack() { echo "$1 $2 config=$SAILOR_CLUSTER_DIR/etc/sailor.yaml" >"$SAILOR_CLUSTER_DIR/etc/plugstack.conf.d/sailor.conf"; }
node_state() { sinfo -h -n t1 -N -o %T | head -1 | tr -d '*'; }
settled() { case $(node_state) in idle | drained | down) ;; *) return 1 ;; esac; }
idle() { [ "$(sinfo -h -n t1 -N -o %T | head -1)" = idle ]; } # and answers: no asterisk
# Slurm refuses the change while the node goes down.
resumed() { idle || { scontrol update nodename=t1 state=resume 2>/dev/null || true; false; }; }
wait_until() {
  local tries=$(($1 * 10))
  shift
  until "$@"; do tries=$((tries - 1)); [ $tries -gt 0 ] || return 1; sleep 0.1; done
}
revive() {
  scancel -u "$SAILOR_CLUSTER_USER" 2>/dev/null || true
  scontrol update nodename=t1 state=down reason=test
  wait_until 20 resumed || true
}
slurmd_runs() {
  local pid
  pid=$(cat "$SAILOR_CLUSTER_DIR/run/slurmd.t1.pid" 2>/dev/null) && [ -n "$pid" ] && [ -e "/proc/$pid" ]
}
slurmd_is_gone() { ! slurmd_runs; }
# Returns when the new slurmd has written its pid file, which later releases do after they detached; without that, it ended.
restart_slurmd() {
  if slurmd_runs; then
    kill "$(cat "$SAILOR_CLUSTER_DIR/run/slurmd.t1.pid")" 2>/dev/null || true
    wait_until 20 slurmd_is_gone || { echo "sailor: slurmd does not end" >&2; exit 1; }
  fi
  if slurmd -N t1 </dev/null >/dev/null 2>&1; then wait_until 3 slurmd_runs || true; fi
}

# The exit code CODE of a job, given what it wrote to FILE.
verdict() {
  if [ "$1" = 0 ] && ! grep -qs ran "$2"; then echo lost; else echo "$1"; fi
}
ended() { case $(scontrol show job -o "$1" | sed 's/.*JobState=\([A-Z_]*\).*/\1/') in COMPLETED | FAILED | NODE_FAIL | CANCELLED) ;; *) return 1 ;; esac; }
batch() {
  local id rc=0
  id=$(user timeout 5 sbatch --parsable -o "$work/out.%j" "$@" 2>/dev/null </dev/null) || rc=$?
  [ $rc = 0 ] || [ $rc = 124 ] || { echo $rc; return; }
  [ $rc = 0 ] && wait_until 5 ended "$id" || { echo stuck; return; } # also while sbatch waits for the start of a planned job
  verdict "$(scontrol show job -o "$id" | sed 's/.*ExitCode=\([0-9]*\):.*/\1/')" "$work/out.$id"
}
step() {
  local rc=0
  user timeout 5 srun "$@" >"$work/out.step" 2>/dev/null </dev/null || rc=$?
  if [ $rc = 124 ]; then echo stuck; else verdict $rc "$work/out.step"; fi
}

failed=0
row() { # HOOK CONTEXT FAULT: both modes
  local hook=$1 context=$2 fault=$3 mode library command plain planned state
  for mode in optional required; do
    [[ $hook,$context,$mode,$fault =~ $pattern ]] || continue
    library=$plugins/spank_fault.so
    [ "$hook" != load ] || library=$plugins/$fault.so
    case $hook,$fault in
      planner,missing) rm "$plugins/sailor_planner.so" ;;
      planner,broken) cp "$plugins/broken.so" "$plugins/sailor_planner.so" ;;
    esac
    echo "$hook $context $fault" >"$plugins/fault"
    chmod a+r "$plugins/fault"
    plugstack $mode "$library"
    # slurmd looks at its plugins when it starts, also for what to run around a job.
    if [[ $context =~ ^(slurmd|job_script)$ ]]; then restart_slurmd; wait_until 5 settled || true; fi
    command=batch
    [ "$context" != local ] || command=step
    plain=$($command -w t1 -p small ./plain.sh)
    [ "$context" != job_script ] || sleep 0.5 # what the epilog does to the node comes after the job
    wait_until 2 settled || true
    state=$(node_state)
    [ "$state" = idle ] || revive
    planned=$($command "${plan[@]}" ./planned.sh)
    [ "$context" != job_script ] || sleep 0.5 # what the epilog does to the node comes after the job
    wait_until 2 settled || true
    [ "$state" != idle ] || state=$(node_state)
    case $state in idle | drained | down) ;; *) state=busy ;; esac
    slurmd_runs || state=gone # when the controller notices depends on the release
    rows+="$hook,$context,$mode,$fault,$plain,$planned,$state"$'\n'
    [ $form != csv ] || echo "$hook,$context,$mode,$fault,$plain,$planned,$state"
    if [ $mode = optional ] || [[ $fault =~ ^(throw|error)$ ]]; then
      [ "$plain $state" = "0 idle" ] || { echo "sailor: this must not be: a plain job failed or the node is $state" >&2; failed=1; }
    fi
    if { [[ $fault =~ ^(throw|error)$ ]] || [ "$hook" = planner ]; } && [ "$planned" = 9 ]; then
      echo "sailor: this must not be: a job ran without its plan" >&2
      failed=1
    fi
    # The next row begins with a sound cluster.
    : >"$plugins/fault"
    [ "$hook" != planner ] || cp "$build/lib/spank_fault_planner.so" "$plugins/sailor_planner.so"
    plugstack optional "$plugins/spank_fault.so"
    scancel -u "$SAILOR_CLUSTER_USER" 2>/dev/null || true
    if [[ $context =~ ^(slurmd|job_script)$ ]]; then restart_slurmd; fi
    [ "$state" = idle ] || revive
    wait_until 30 idle ||
      { echo "sailor: the node does not come back" >&2; exit 1; }
  done
}

# A line of the guide's table for every line of ours: HOOK CONTEXT FAULT, then what happens in each mode.
markdown() {
  awk -F, '{what = $5 " / " $6 " / " $7; key = "`" $1 "` | " $2 " | " $4}
    $3 == "optional" {optional[key] = what} $3 == "required" {print "| " key " | " optional[key] " | " what " |"}'
}

rows=
[ $form != csv ] || echo hook,context,mode,fault,plain_rc,planned_rc,node_state
for fault in missing broken other_release; do
  for context in allocator local; do row load $context $fault; done # the remote and slurmd side load it too
done
for fault in missing broken other_release; do
  for context in allocator local; do row planner $context $fault; done
done
for fault in throw error unguarded; do
  for context in allocator local remote; do
    [ $fault = throw ] || row init $context $fault # C throws nothing
    [ "$context $fault" = "remote throw" ] || [ "$context $fault" = "remote error" ] || row init_post_opt $context $fault
  done
done
row init slurmd unguarded
row slurmd_exit slurmd unguarded
row init job_script unguarded
row job_prolog job_script unguarded
row job_epilog job_script unguarded
row local_user_init local unguarded
for hook in user_init task_init_privileged task_init task_post_fork task_exit exit; do row $hook remote unguarded; done
row exit local unguarded
case $form in
  table) markdown <<<"${rows%$'\n'}" ;;
  check)
    # Column 5 of the guide's table is what happens under `optional`, column 6 under `required`. A second table has the rows that differ
    # under later releases, which it names in a column before the others.
    awk -F ' *[|,] *' -v guide="$root/etc/doc/admin-guide.md" -v release="$(sinfo -V | grep -oE '[0-9]+\.[0-9]+' | head -1)" '
      BEGIN {
        while ((getline line < guide) > 0) {
          columns = split(line, f, / *\| */)
          if (columns == 8 && index(f[2], release)) sub(/^\| [^|]*/, "", line)
          else if (columns != 7) continue
          split(line, f, / *\| */)
          gsub(/`/, "", f[2])
          told[f[2] "," f[3] ",optional," f[4]] = f[5]
          told[f[2] "," f[3] ",required," f[4]] = f[6]
        }
      }
      NF {
        key = $1 "," $2 "," $3 "," $4; found = $5 " / " $6 " / " $7; ++n
        if (told[key] != found) {print "sailor: " key ": the admin guide says \"" told[key] "\", found \"" found "\""; bad = 1}
      }
      END {if (!bad) print n " rows are as the admin guide says"; exit bad}' <<<"$rows" || failed=1
    ;;
esac
exit $failed
