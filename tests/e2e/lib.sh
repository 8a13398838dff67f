# Shared by the end-to-end tests (sourced): a running throw-away cluster in $SAILOR_CLUSTER_DIR, and functions for expectations.
set -euo pipefail
umask 022
e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
eval "$("$e2e/../cluster.sh" env)"
plugstack=$SAILOR_CLUSTER_DIR/etc/plugstack.conf.d/sailor.conf
work=$(mktemp -d "$SAILOR_CLUSTER_DIR/work/test.XXXXXX")
chmod 1777 "$work"
cp "$e2e"/fixtures/tiny.yaml "$work"
cp "$e2e"/fixtures/tiny_profile.json "$SAILOR_CLUSTER_DIR/profiles/"
chmod a+r "$work"/* "$SAILOR_CLUSTER_DIR/profiles/tiny_profile.json"
cd "$work"
failures=0
job=
# After any end of a test, the cluster is idle for the next one. A test that changes the cluster redefines restore.
restore() { :; }
leave() {
  restore
  squeue -h -o %A | sort -u | xargs -r scancel 2>/dev/null || true
  # Jobs that end may still write there; what a trap does after this must not depend on it.
  cd /
  rm -rf -- "$work" 2>/dev/null || { sleep 2; rm -rf -- "$work" || true; }
}
trap leave EXIT

# user COMMAND...: as the ordinary user of the cluster.
user() {
  if [ "$UID" = 0 ]; then runuser -u "$SAILOR_CLUSTER_USER" -- "$@"; else "$@"; fi
}
# run COMMAND...: as the user, at most 180 s; leaves out, err and rc.
run() {
  rc=0
  user timeout 180 "$@" >"$work/.out" 2>"$work/.err" </dev/null || rc=$?
  out=$(cat "$work/.out") err=$(cat "$work/.err")
}

# ok WHAT, not_ok WHAT: verdicts. expect WHAT CONDITION...: by a command's exit status.
ok() { echo "ok: $1"; }
not_ok() {
  failures=$((failures + 1))
  echo "NOT OK: $1"
  printf '  rc=%s\n  out=%s\n  err=%s\n' "${rc-}" "${out-}" "${err-}"
}
expect() {
  local what=$1
  shift
  if "$@"; then ok "$what"; else not_ok "$what"; fi
}
equal() { [ "$1" = "$2" ] || { echo "  expected: $2"; echo "  found:    $1"; return 1; }; }
contains() { [[ $1 == *"$2"* ]]; }
# one_error TEXT: exactly one line, in the house style.
one_error() { [ "$(wc -l <<<"$1")" = 1 ] && [[ $1 == "sailor: "* ]]; }
finish() {
  wait_idle
  [ $failures = 0 ] || { echo "$failures failed"; exit 1; }
  echo "all passed"
}

# Slurm would wait two minutes before it restarts a requeued job ($job). Sets the start time once: every update delays the job. Not to now:
# a slurmd takes what starts in the second of its end for what it has ended ("Job credential revoked"), and the job fails.
restart_now() {
  local reason start
  read -r reason start <<<"$(squeue -h -j "$job" -o '%r %S')"
  if [ "$reason" = BeginTime ] && [ "$start" != N/A ] && [ "$(date -d "$start" +%s)" -gt $(($(date +%s) + 10)) ]; then
    scontrol update jobid="$job" starttime=now+3 || true
  fi
}

# wait_until SECONDS COMMAND...: at most SECONDS of an idle machine. No test depends on how busy the machine is: it waits four times as long.
wait_until() {
  local deadline=$((SECONDS + 4 * $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    sleep 0.2
  done
}
# If Slurm does not answer in time, neither is true.
no_jobs() { local jobs; jobs=$(squeue -h -o %A) && [ -z "$jobs" ]; }
all_idle() { local states; states=$(sinfo -h -N -o %T) && [ -n "$states" ] && ! grep -qv '^idle$' <<<"$states"; }
wait_idle() { wait_until 90 no_jobs && wait_until 60 all_idle || { squeue; sinfo; echo "cluster is not idle"; exit 1; }; }
has_text() { [ -s "$1" ] && grep -q "$2" "$1"; }
# The highest job id so far: unchanged when nothing was submitted.
last_job() { scontrol show job -o 2>/dev/null | sed -n 's/^JobId=\([0-9]*\).*/\1/p' | sort -n | tail -1; }

# RPCs of this type that slurmctld has answered since `sdiag -r`.
requests() { sdiag | awk -v type="$1" '$1 == type { sub(/.*count:/, ""); n = $1 } END { print n + 0 }'; }

# The nodes that Slurm gave the job of this id, all components, sorted, one line.
nodes_of_job() {
  scontrol show job -o "$1" | sed -n 's/.* NodeList=\([^ ]*\).*/\1/p' |
    while read -r list; do scontrol show hostnames "$list"; done | sort -u | paste -sd' '
}
partitions_of_job() { scontrol show job -o "$1" | sed -n 's/.* Partition=\([^ ]*\).*/\1/p' | sort -u | paste -sd' '; }
# The nodes of a plan in a file, sorted, one line.
nodes_of_plan() { { grep -o '"node": *"[^"]*"' "$1" || true; } | cut -d'"' -f4 | sort -u | paste -sd' '; }
# The nodes that the sbatch command of a dry run asks for, sorted, one line.
nodes_of_command() { { grep -o -- '--nodelist=[^ ]*' <<<"$1" || true; } | cut -d= -f2 | tr , '\n' | sort -u | paste -sd' '; }
# The GPUs that it asks for, from the comment of the job: "sailor: 6 A100-40 + 2 V100-16, ...".
gpus_of_command() { grep -o 'comment=sailor: [^,]*' <<<"$1" | grep -oE '[0-9]+ [A-Z]' | awk '{ sum += $1 } END { print sum + 0 }'; }

# A batch script that writes its plan to a file, then waits until the file `go` exists. The plan is base64 of a zlib stream; gzip reads it
# after a gzip header (and then reports the missing trailer).
cat >"$work/body.sh" <<'BODY'
#!/bin/bash
packed=
for ((i = 0; ; i++)); do
  name=SLURM_SPANK_SAILOR_PLAN_$i
  [ -n "${!name:-}" ] || break
  packed+=${!name}
done
{ printf '\x1f\x8b\x08\x00\x00\x00\x00\x00'; base64 -d <<<"$packed"; } | gzip -dc >plan.$SLURM_JOB_ID 2>/dev/null
echo "${SLURM_SPANK_SAILOR_JOB:-none}" >job.$SLURM_JOB_ID
echo done >ready.$SLURM_JOB_ID
for ((i = 0; i < 300; i++)); do [ -e go ] && exit 0; sleep 0.1; done
BODY
chmod a+rx "$work/body.sh"

# submitted: the job id of the last run of sbatch, once its script has started and written its plan.
submitted() {
  job=$(sed -n 's/^Submitted batch job \([0-9]*\)$/\1/p' "$work/.out")
  [ -n "$job" ] && wait_until 60 test -s "ready.$job"
}
release() { touch go; wait_idle; rm -f go; }

wait_idle
