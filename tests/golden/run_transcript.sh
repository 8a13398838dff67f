#!/usr/bin/env bash
# Runs the command lines of a transcript and compares what they print with what the transcript says.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: run_transcript.sh [--update] BIN_DIR TRANSCRIPT

A transcript is a text file. Lines that begin with "$ " are commands for bash; the lines after each are what it
prints: standard output as it is, standard error behind "2> ", and "exit N" where N is not 0. Other lines
before the first command are comments. The time that a search took is printed as "T".

Commands run in a scratch copy of tests/golden (fixtures/ is the working directory, ../broken beside it), with
BIN_DIR first in PATH and SAILOR_CONFIG=sailor.yaml; the scratch directory is printed as "DIR". Two functions help:
  with_catalog FILE | with_profile FILE    plan job.yaml with this catalog, or with this file among the profiles

--update writes what was printed into the transcript.
USAGE
}

update=false
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  --update) update=true; shift ;;
esac
(($# == 2)) || { usage >&2; exit 2; }
bin=$(cd "$1" && pwd)
transcript=$(realpath "$2")
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$golden/fixtures" "$golden/broken" "$scratch/"
cd "$scratch/fixtures"
export SAILOR_SOURCE=$golden/../..
# How much a search did is not what a transcript protects, and changes with every change of the search.
counters='s/[0-9]+ configurations, [0-9]+ plans predicted in [0-9.]+ s,/N configurations, N plans predicted in T s,/'
counters+='; s/[0-9]+ x (memory|no node has enough free GPUs together|budget|energy limit|throughput floor)/N x \1/g'

export PATH=$bin:$PATH SAILOR_CONFIG=sailor.yaml SAILOR_LIBEXEC=$scratch/fixtures/libexec LC_ALL=C.UTF-8

with_catalog() {
  printf 'sailor_site: 1\ncatalog: %s\nprofiles: [profiles]\n' "$1" > with.yaml
  sailor plan job.yaml --cluster snapshot.yaml --config with.yaml
}
with_profile() {
  mkdir -p with
  cp "$1" with/
  printf 'sailor_site: 1\ncatalog: catalog.yaml\nprofiles: [with]\n' > with.yaml
  sailor plan job.yaml --cluster snapshot.yaml --config with.yaml
}
export -f with_catalog with_profile

actual=$scratch/actual
# Comments before the first command are kept.
sed -n '/^\$ /q; p' "$transcript" > "$actual"
while IFS= read -r command; do
  printf '$ %s\n' "$command" >> "$actual"
  code=0
  bash -c "$command" > "$scratch/out" 2> "$scratch/err" < /dev/null || code=$?
  sed -E "s|$scratch/fixtures/|DIR/|g; s|$scratch|DIR/..|g; $counters" "$scratch/out" >> "$actual"
  sed -E "s|$scratch/fixtures/|DIR/|g; s|$scratch|DIR/..|g; $counters; s|^|2> |" "$scratch/err" >> "$actual"
  ((code == 0)) || echo "exit $code" >> "$actual"
  rm -rf with with.yaml
done < <(sed -n 's/^\$ //p' "$transcript")

if $update; then
  cp "$actual" "$transcript"
elif ! diff -u "$transcript" "$actual"; then
  echo "$transcript: differs; when the new output is right: $0 --update $bin $transcript" >&2
  exit 1
fi
