#!/usr/bin/env bash
# Runs the README's quickstart and tests in a Debian 12 minbase root made by debootstrap, without any of the packages.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/fresh.sh [--root DIR] [--keep] [--only quickstart|tests]

Makes a new Debian root in DIR (default: a temporary directory), puts a clean checkout of HEAD into it, and runs there, in a
mount and process namespace of its own,
  etc/quickstart.sh   twice: the second run skips finished steps
  tests/run.sh
Prints the time of each. Fails when one fails or leaves a process behind. Needs root, debootstrap and about 5 GB. --keep
keeps the root; an existing DIR is used unchanged.
USAGE
}

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=
keep=no
only=all
inner=no
while (($#)); do
  case $1 in
    --root) root=${2:?--root needs a directory}; shift ;;
    --keep) keep=yes ;;
    --only) only=${2:?--only needs quickstart or tests}; shift ;;
    --inner) inner=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

# Processes of this namespace besides the ones that run the proof; kernel threads do not exist here.
left_over() {
  local pid name
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    [[ $pid == 1 || $pid == "$$" || $pid == "$BASHPID" ]] && continue
    name=$(tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null) || continue
    [[ -n $name ]] && echo "$pid $name"
  done
}

step() {  # NAME COMMAND...
  local name=$1 started=$SECONDS
  shift
  echo "== $name: $*"
  if ! chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" < /dev/null; then
    echo "== $name: FAILED after $((SECONDS - started)) s"
    exit 1
  fi
  local left
  left=$(left_over)
  if [[ -n $left ]]; then
    printf '== %s: FAILED, processes left behind:\n%s\n' "$name" "$left"
    exit 1
  fi
  echo "== $name: done in $((SECONDS - started)) s, no process left behind"
}

if [[ $inner == yes ]]; then
  mount --make-rprivate /
  mount -t proc proc /proc
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  if [[ $only != tests ]]; then
    step quickstart /src/etc/quickstart.sh
    results=$(find "$root/tmp/sailor-quickstart/results" -mindepth 1 -maxdepth 1 | tail -n 1)
    types=$(grep -oE '"gpu_type": *"[^"]*"' "$results/plan.json" | sort -u | wc -l)
    if ((types < 2)) || [[ ! -s $results/report.html ]]; then
      echo "== quickstart: FAILED, its plan has $types GPU type(s) and should have several, or there is no report.html"
      exit 1
    fi
    step "quickstart again" /src/etc/quickstart.sh
  fi
  [[ $only == quickstart ]] || step tests /src/tests/run.sh
  exit 0
fi

if ((EUID != 0)); then
  echo "sailor: tests/fresh.sh needs root (debootstrap, chroot)" >&2
  exit 1
fi
if ! command -v debootstrap > /dev/null; then
  echo "sailor: debootstrap is missing: apt-get install debootstrap" >&2
  exit 1
fi
made=no
if [[ -z $root ]]; then
  root=$(mktemp -d "${TMPDIR:-/tmp}/sailor-fresh-XXXXXX")
  chmod 755 "$root"  # it becomes /, which everybody enters
  made=yes
fi
cleanup() {
  if [[ $keep == no && $made == yes ]]; then rm -rf --one-file-system "$root"; else echo "fresh root: $root"; fi
}
trap cleanup EXIT

if [[ ! -e $root/usr/bin/apt-get ]]; then
  echo "== debootstrap into $root"
  started=$SECONDS
  debootstrap --variant=minbase bookworm "$root" "${SAILOR_DEBIAN_MIRROR:-http://deb.debian.org/debian}" > "$root.log" 2>&1 || {
    tail -n 5 "$root.log" >&2
    exit 1
  }
  rm -f "$root.log"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  echo "== debootstrap: done in $((SECONDS - started)) s"
fi
rm -rf "$root/src"
mkdir -p "$root/src"
git -C "$source_root" archive HEAD | tar -x -C "$root/src"
status=0
unshare --mount --pid --fork --kill-child "$0" --inner --root "$root" --only "$only" || status=$?
exit "$status"
