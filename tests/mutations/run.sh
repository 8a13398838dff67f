#!/usr/bin/env bash
# Do the tests notice faults of the program? See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/mutations/run.sh [--soak] [--only NAME] [-j N]

Builds a copy of the sources in build-mutations, where the tests that the patches of this directory name must pass. Then applies one patch
after the other, each a fault, and runs the tests that must notice it. Prints a row for every fault; exit 1 when one is not noticed.

  --soak        only faults in the state of an elastic job, and instead of tests, random losses of processes and nodes (tests/chaos.sh)
  --only NAME   only this patch, without .patch; or those that a pattern matches, such as 'loss-*'
  -j N          compile with N jobs (default: one per core)

A patch begins with what is wrong, and names in `Targets:` what has to be built, in `Tests:` a pattern of ctest's, in `Soak:` that the
soak must notice it, and a setting of it.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
only='*'
soak=
jobs=$(nproc)
while (($#)); do
  case $1 in
    --only) only=${2:?--only needs a name}; shift ;;
    --soak) soak=yes ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

source=$root/build-mutations/source
build=$source/build
log=$root/build-mutations/log
mkdir -p "$source"
# What is equal to an earlier run's copy keeps its time, and is not compiled again.
git -C "$root" ls-files --cached --others --exclude-standard | while read -r file; do
  [[ -f $root/$file ]] && ! cmp -s "$root/$file" "$source/$file" || continue
  mkdir -p "$(dirname "$source/$file")"
  cp "$root/$file" "$source/$file"
done
(cd "$source" && find . -path ./build -prune -o -type f -printf '%P\n') | while read -r file; do
  [[ -f $root/$file ]] || rm "$source/$file"
done
: > "$log"

header() { sed -n "s/^$2: //p;/^---/q" "$1"; }
targets_of() { if [[ $soak ]]; then echo product; else header "$1" Targets; fi; }
checks_of() { header "$1" "$([[ $soak ]] && echo Soak || echo Tests)"; }
# Fails when a test does, and when there is none. The soak's reference is a program without the fault: replay_run is not built again.
run_tests() {
  if [[ $soak ]]; then
    "$source/tests/chaos.sh" --setting "$1" --seed 1 --faults 20 --minutes 3 --build "$build" >> "$log" 2>&1
  else
    ctest --test-dir "$build" -R "$1" -j 2 --timeout 240 --stop-on-failure --no-tests=error >> "$log" 2>&1
  fi
}

patches=()
for patch in "$root"/tests/mutations/$only.patch; do
  [[ ! -e $patch || -z $(checks_of "$patch") ]] || patches+=("$patch")
done
((${#patches[@]})) || { echo "sailor: tests/mutations/run.sh: there is no patch \"$only\"" >&2; exit 2; }
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
cmake -S "$source" --preset ci >> "$log"
mapfile -t targets < <(for patch in "${patches[@]}"; do targets_of "$patch"; done | tr ' ' '\n' | sort -u)
cmake --build "$build" -j "$jobs" --target "${targets[@]}" ${soak:+replay_run} -- --quiet >> "$log" ||
  { tail -30 "$log"; echo "the sources do not build"; exit 1; }
mapfile -t checks < <(for patch in "${patches[@]}"; do checks_of "$patch"; done | sort -u)
for check in "${checks[@]}"; do
  run_tests "$check" || { tail -30 "$log"; echo "the tests do not pass without a fault"; exit 1; }
done

printf '%-36s %-9s %7s  %s\n' FAULT NOTICED SECONDS 'NOTICED BY'
missed=0
for patch in "${patches[@]}"; do
  began=$SECONDS
  outcome=yes
  mapfile -t targets < <(targets_of "$patch" | tr ' ' '\n')
  if ! patch -d "$source" -p1 -s --dry-run < "$patch" >> "$log" 2>&1; then
    outcome=outdated
  else
    patch -d "$source" -p1 -s --no-backup-if-mismatch < "$patch"
    if ! cmake --build "$build" -j "$jobs" --target "${targets[@]}" -- --quiet >> "$log" 2>&1; then
      outcome="no build"
    elif run_tests "$(checks_of "$patch")"; then
      outcome=NO
    fi
    patch -d "$source" -p1 -s -R --no-backup-if-mismatch < "$patch"
  fi
  [[ $outcome == yes ]] || missed=$((missed + 1))
  printf '%-36s %-9s %7d  %s\n' "$(basename "$patch" .patch)" "$outcome" $((SECONDS - began)) "$(checks_of "$patch")"
done
echo "${#patches[@]} faults, $missed not noticed; $log"
exit $((missed > 0))
