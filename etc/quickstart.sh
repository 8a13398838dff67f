#!/usr/bin/env bash
# The whole product on one machine without a GPU: installs packages, builds, boots a throw-away Slurm cluster, submits a planned
# training job as an ordinary user, follows it, shows the result, stops the cluster.
set -euo pipefail
umask 022

usage() {
  cat <<'USAGE'
usage: etc/quickstart.sh [--job JOB.yaml] [--text FILE] [--dir DIR] [--objective throughput|cost|energy]
                         [-- SBATCH OPTIONS]

  --job JOB.yaml   the job to submit (default: etc/jobs/quickstart.yaml)
  --text FILE      train on this text (default: the licences and manual pages of this machine)
  --dir DIR        working directory (default: ${TMPDIR:-/tmp}/sailor-quickstart)
  --objective O    objective of the planner (default: throughput)
  SBATCH OPTIONS   passed to sbatch, for example --sailor-max-gpus=T4-16=0

Needs Debian 12, 13 or 14 (etc/dev/install-packages.sh --help says more about releases), and root unless the packages
are installed. A second run reuses packages, build, text and profile. The script stops the cluster and leaves no process
behind, even when it is interrupted.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${TMPDIR:-/tmp}/sailor-quickstart
job=$root/etc/jobs/quickstart.yaml
text=
objective=throughput
sbatch_options=()
while (($#)); do
  case $1 in
    --job) job=$(realpath "${2:?--job needs a file}"); shift ;;
    --text) text=$(realpath "${2:?--text needs a file}"); shift ;;
    --dir) work=$(realpath -m "${2:?--dir needs a directory}"); shift ;;
    --objective) objective=${2:?--objective needs a name}; shift ;;
    --) shift; sbatch_options=("$@"); break ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

started=$SECONDS
say() { printf '[%3d s] %s\n' $((SECONDS - started)) "$*"; }
fail() { echo "sailor: quickstart: $*" >&2; exit 1; }
for file in "$job" ${text:+"$text"}; do [[ -r $file ]] || fail "$file cannot be read"; done

# --- packages and build -------------------------------------------------------------------------------------------------
say "packages"
"$root/etc/dev/install-packages.sh"
say "build (the first time takes a few minutes)"
build=$root/build
cmake -S "$root" -B "$build" -G Ninja > /dev/null
cmake --build "$build" --target product -- --quiet
mkdir -p "$work"
[[ -O $work && ! -L $work ]] || fail "$work belongs to another user; use another --dir"

# --- the text: one token per byte ---------------------------------------------------------------------------------------
# Plain English from files that every Debian machine has: the licences, then manual pages without their markup.
collect_text() {
  cat /usr/share/common-licenses/{Apache-2.0,Artistic,GFDL-1.3,GPL-1,GPL-2,GPL-3,LGPL-2.1,MPL-2.0,CC0-1.0} 2> /dev/null || true
  find /usr/share/man/man[1-8] -name '*.gz' -xtype f -size -200k 2> /dev/null | LC_ALL=C sort | sed -n 1,1500p | xargs -r zcat -f |
    sed -e "/^[.']/d" -e 's/\\f[A-Z]//g; s/\\-/-/g; s/\\&//g; s/\\(..//g'
}
if [[ -n $text ]]; then
  install -m 644 "$text" "$work/text.txt"
elif [[ ! -s $work/text.txt || -e $work/text.user ]]; then
  say "text: licences and manual pages of this machine"
  collect_text | LC_ALL=C tr -cd '\11\12\40-\176' > "$work/text.part"
  mv "$work/text.part" "$work/text.txt"
fi
if [[ -n $text ]]; then touch "$work/text.user"; else rm -f "$work/text.user"; fi
[[ $(stat -c %s "$work/text.txt") -gt 20000 ]] || fail "$work/text.txt is too short to train on; use another one with --text"

# --- the cluster --------------------------------------------------------------------------------------------------------
export SAILOR_CLUSTER_DIR=$work/cluster
cluster=$root/etc/dev/cluster
"$cluster/down.sh" 2> /dev/null || fail "the cluster of an earlier run cannot be stopped"
stop() { trap - EXIT INT TERM; "$cluster/down.sh" 2> /dev/null || true; }
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
say "boot a throw-away Slurm cluster"
user_option=()
((EUID == 0)) && user_option=(--user sailor)
exports=$("$cluster/up.sh" --build "$build" "${user_option[@]}")
eval "$exports"
as_user() {
  if ((EUID == 0)); then
    runuser -u "$SAILOR_CLUSTER_USER" -- env USER="$SAILOR_CLUSTER_USER" HOME="$run" "$@"
  else
    "$@"
  fi
}
run=$SAILOR_CLUSTER_DIR/work
as_user test -r "$SLURM_CONF" || fail "$work is not accessible to user $SAILOR_CLUSTER_USER; use another --dir"
sinfo -N -o '%8N %10P %6t %G'

# --- profile, plan, submit ----------------------------------------------------------------------------------------------
# The job spec and its data are in one directory, as a user would have them.
install -m 644 "$job" "$run/job.yaml"
ln -sf "$work/text.txt" "$run/text.txt"
# The profile depends on the model and on this build; it is measured once for both.
key=$(cat "$run/job.yaml" "$build/bin/sailor-profile" | sha256sum | cut -c1-16)
if [[ ! -s $work/profiles-$key/done ]]; then
  say "measure the model's layers on this machine's CPU"
  rm -rf "$work"/profiles-*
  mkdir -p "$work/profiles-$key"
  sailor profile "$run/job.yaml" --seconds 12 --out "$work/profiles-$key"
  date > "$work/profiles-$key/done"
fi
cp "$work/profiles-$key"/*.json "$SAILOR_CLUSTER_DIR/profiles/"

cd "$run"
say "sbatch --sailor-objective=$objective ${sbatch_options[*]-} job.yaml   (as user $SAILOR_CLUSTER_USER)"
status=0
as_user sbatch --parsable --no-requeue "--sailor-objective=$objective" ${sbatch_options[@]+"${sbatch_options[@]}"} job.yaml \
  > submit.out 2> table.txt || status=$?
cat table.txt
((status == 0)) || exit "$status"
id=$(cut -d';' -f1 submit.out)
say "job $id submitted"

# --- follow it ----------------------------------------------------------------------------------------------------------
results=$run/sailor-$id
live=no
[[ -t 1 ]] && live=yes
last=
next=0   # a log gets a line every 10 s
shown=no
submitted=$SECONDS
ended() {  # a Slurm that does not answer in time does not mean that the job ended
  scontrol show job -o "$id" 2> /dev/null | head -n 1 |
    grep -qE 'JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY)'
}
until ended; do
  if [[ $shown == no && -n $(squeue -h -j "$id" -t R -o %i 2> /dev/null) ]]; then
    say "job $id runs on the planned nodes"
    squeue -h -j "$id" -o '%i %P %N' | while read -r part partition nodes; do
      printf '        %-6s partition %-8s nodes %s\n' "$part" "$partition" "$nodes"
    done
    shown=yes
  fi
  if [[ $shown == no && $((SECONDS - submitted)) -gt 120 ]]; then
    fail "job $id does not start: $(squeue -h -j "$id" -o %r | head -n 1)"
  fi
  line=$(grep '^step ' "$run/slurm-$id.out" 2> /dev/null | tail -n 1 || true)
  if [[ -n $line && $line != "$last" && ( $live == yes || $SECONDS -ge $next ) ]]; then
    if [[ $live == yes ]]; then printf '\r\033[K%s' "$line"; else printf '%s\n' "$line"; fi
    last=$line
    next=$((SECONDS + 10))
  fi
  sleep 0.5
done
[[ $live == yes ]] && echo

# --- the result ---------------------------------------------------------------------------------------------------------
kept=$work/results/$(date +%Y%m%d-%H%M%S)-job-$id
mkdir -p "$kept"
cp -r "$results/." "$kept/" 2> /dev/null || true
cp table.txt job.yaml "slurm-$id.out" "$kept/" 2> /dev/null || true
if [[ ! -s $kept/summary.json ]]; then
  tail -n 20 "slurm-$id.out" >&2 || true
  fail "the job ended without a summary; see $kept"
fi
echo
cat table.txt
echo
sed -n '/^\(finished\|failed\|cancelled\): /,$p' "slurm-$id.out" | grep -v '^files: '
echo
grep -q '"status": "finished"' "$kept/summary.json" || fail "the job did not finish; see $kept"
sailor report "$kept" > /dev/null
say "stop the cluster"
stop
echo "files:  $kept (job.yaml, plan.json, table.txt, metrics.jsonl, summary.json, logs/, slurm-$id.out)"
echo "report: $kept/report.html (the plan, predicted against measured times, memory, what happened; open it in a browser)"
