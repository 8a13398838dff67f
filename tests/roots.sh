#!/usr/bin/env bash
# Builds and tests the project in a root of another Debian release, or in a new one of this release.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/roots.sh SUITE [--fresh] [--working-tree] [--only STEP] [-R PATTERN]

Makes a root of SUITE (Debian's bookworm, trixie or forky, or Ubuntu's noble) if there is none yet, puts a clean checkout of HEAD into it,
and runs there, in mount, process, host name and network namespaces of its own, these steps:
  dependencies etc/dev/install-packages.sh --test   (always, and the only step with a network)
  build        tests/run.sh --build                 (warnings are errors)
  tests        tests/run.sh
  quickstart   etc/quickstart.sh, twice: the second run skips finished steps
  matrix       tests/spank_matrix.sh --check: all failures of the plugin
  latency      tests/bench/submit_latency.sh --plain: what the plugin costs a plain sbatch
  starts       tests/bench/start_latency.sh: starts of planned jobs
  packages     packages, which tests/package_chroot.sh installs into a root without a compiler (not on noble)
Noble has no libtorch: the wheels and the CUDA toolkit of tests/libtorch_2_11.sh are mounted there.
Prints the time of each. Fails when one fails or leaves a process behind.

  --fresh         removes the root of an earlier run first; otherwise its packages and its compiler cache are used again
  --working-tree  takes the files as they are instead of HEAD, without those that git ignores
  --only STEP     only this step; quickstart builds what it needs itself, the others take the build of an earlier run
  -R PATTERN      only the tests whose names match

Without --only all steps run. Roots are in $SAILOR_ROOTS (default /var/tmp/sailor-roots), 5 GB each. Needs root and debootstrap.
USAGE
}

source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$source_root/tests/debian_root.sh"
suite=
only=all
fresh=no
files=head
inner=
pattern=()
torch=()
while (($#)); do
  case $1 in
    bookworm | trixie | forky | noble) suite=$1 ;;
    --only) only=${2:?--only needs a step}; shift ;;
    --fresh) fresh=yes ;;
    --working-tree) files=tree ;;
    -R) pattern=(-R "${2:?-R needs a pattern}"); shift ;;
    --inner) inner=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
case $only in all | build | tests | quickstart | matrix | latency | starts | packages) ;; *) usage >&2; exit 2 ;; esac
[[ -n $suite ]] || { usage >&2; exit 2; }
root=${SAILOR_ROOTS:-/var/tmp/sailor-roots}/$suite

# Processes of this namespace besides those that run the steps; kernel threads do not exist here.
left_over() {
  local pid name
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    [[ $pid == 1 || $pid == "$$" || $pid == "$BASHPID" ]] && continue
    name=$(tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null) || continue
    [[ -n $name ]] && echo "$pid $name $(tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep '^SLURM_CONF=')"
  done
}

step() {  # NAME COMMAND...
  local name="$suite: $1" started=$SECONDS
  shift
  echo "== $name: $*"
  if ! chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 CCACHE_BASEDIR=/src ${OPENBLAS_CORETYPE:+OPENBLAS_CORETYPE="$OPENBLAS_CORETYPE"} \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${torch[@]}" "$@" < /dev/null; then
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

quickstart() {
  step quickstart /src/etc/quickstart.sh
  local results types
  results=$(find "$root/tmp/sailor-quickstart/results" -mindepth 1 -maxdepth 1 | sort | tail -n 1)
  types=$(grep -oE '"gpu_type": *"[^"]*"' "$results/plan.json" | sort -u | wc -l)
  if ((types < 2)) || [[ ! -s $results/report.html ]]; then
    echo "== quickstart: FAILED, its plan has $types GPU type(s) and should have several, or there is no report.html"
    exit 1
  fi
  step "quickstart again" /src/etc/quickstart.sh
}

if [[ -n $inner ]]; then
  mount --make-rprivate /
  mount -t proc proc /proc
  mount --bind "$root" "$root"  # so that / is a mount point there
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  hostname "sailor-$suite"
  if [[ $suite == noble ]]; then
    mkdir -p "$root/site" "$root/usr/local/cuda"
    mount --bind "$SAILOR_WHEELS" "$root/site"
    mount --bind "$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")" "$root/usr/local/cuda"
    libraries=/site/nvidia/cusparselt/lib:/site/nvidia/cu13/lib:/site/nvidia/nvshmem/lib:/usr/local/cuda/lib64
    torch=(TORCH_PREFIX=/site/torch LD_LIBRARY_PATH="$libraries" LDFLAGS="-Wl,-rpath-link,$libraries" TORCH_CUDA_ARCH_LIST=9.0)
  fi
  if [[ $inner == dependencies ]]; then
    step dependencies /src/etc/dev/install-packages.sh --test
    exit 0
  fi
  # A network without a way out, but with an interface besides the loopback: without one, Slurm cannot look up its own host, and
  # Open MPI 5.0 crashes.
  ip link set lo up
  ip link add eth0 type veth peer name eth1
  ip address add 192.0.2.1/24 dev eth0
  ip link set eth0 up
  ip link set eth1 up
  wanted() { [[ $only == "$1" || $only == all ]]; }
  ! wanted build || step build /src/tests/run.sh --build
  ! wanted tests || step tests /src/tests/run.sh "${pattern[@]}"
  ! wanted quickstart || quickstart
  ! wanted matrix || step matrix /src/tests/spank_matrix.sh --check
  ! wanted latency || step latency /src/tests/bench/submit_latency.sh --plain
  ! wanted starts || step starts /src/tests/bench/start_latency.sh --keep /tmp/starts
  if [[ $suite != noble ]] && wanted packages; then
    step packages sh -c 'cd /src/build && rm -rf deb && cpack -G DEB -B deb'
  fi
  exit 0
fi

# The session directories of Open MPI are named by process ids, which in a new namespace come again.
rm -rf "$root"/tmp/{prte,ompi}.*
[[ $fresh == no ]] || rm -rf --one-file-system -- "$root"
started=$SECONDS
mkdir -p "${root%/*}"
make_debian_root "$suite" "$root"
echo "== $suite: root in $root after $((SECONDS - started)) s"
# The build stays, so that a test can be run again quickly.
mkdir -p "$root/src"
find "$root/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
if [[ $files == head ]]; then
  git -C "$source_root" archive HEAD
else
  git -C "$source_root" ls-files -z -co --exclude-standard | (cd "$source_root" && xargs -0 ls -d 2> /dev/null) |
    tar -c -C "$source_root" -T -
fi | tar -x -m -C "$root/src"  # as new, so that what an earlier build made of other files is made again
if [[ $suite == noble ]]; then
  SAILOR_WHEELS=$("$source_root/tests/libtorch_2_11.sh" --wheels) || { echo "$SAILOR_WHEELS" >&2; exit 1; }
  export SAILOR_WHEELS
fi
again=("$0" "$suite" --only "$only" "${pattern[@]}")
unshare --mount --pid --uts --fork --kill-child "${again[@]}" --inner dependencies
unshare --mount --pid --uts --net --fork --kill-child "${again[@]}" --inner steps
if [[ $suite != noble && ($only == packages || $only == all) ]]; then
  "$source_root/tests/package_chroot.sh" --suite "$suite" --debs "$root/src/build/deb"
fi
