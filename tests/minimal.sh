#!/usr/bin/env bash
# Tests -DSAILOR_MINIMAL=ON on a machine with only a compiler, CMake, PyTorch and CUDA. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/minimal.sh [--root DIR]

Makes a Debian root with only a compiler, CMake and Python, puts a checkout of HEAD and the bundle of etc/dev/dependencies.sh
into it, mounts PyTorch 2.11 (tests/libtorch_2_11.sh --wheels) and the CUDA toolkit, builds trainer and profiler there and tests them: a
training with two ranks by `sailor run`, one with two ranks started by hand, a profile, losses and gradients of a few plans. An
existing root in DIR is reused and kept. Needs root, debootstrap and about 3 GB. Exit 77 = skipped, with the reason.
USAGE
}
root=
case ${1:-} in
  "") ;;
  --root) root=${2:?--root needs a directory} ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
. "$source_root/tests/debian_root.sh"
skip() { echo "skipped: $*"; exit 77; }

if [[ ${SAILOR_INNER:-} != yes ]]; then
  ((EUID == 0)) || skip "needs root (debootstrap, chroot)"
  command -v debootstrap > /dev/null || skip "no debootstrap"
  [[ -x $cuda/bin/nvcc ]] || skip "no CUDA toolkit in $cuda"
  wheels=$("$source_root/tests/libtorch_2_11.sh" --wheels) || { echo "$wheels"; exit 77; }
  made=
  if [[ -z $root ]]; then
    root=$(mktemp -d "${TMPDIR:-/tmp}/sailor-minimal.XXXXXX")
    chmod 755 "$root"
    made=$root
  fi
  trap '[[ -z $made ]] || rm -rf --one-file-system -- "$made"' EXIT
  make_debian_root bookworm "$root" --include=g++,cmake,ninja-build,make,python3
  rm -rf "$root/src" "$root/deps"
  mkdir -p "$root/src" "$root/site" "$root/cuda"
  git -C "$source_root" archive HEAD | tar -x -C "$root/src"
  "$source_root/etc/dev/dependencies.sh" "$root/deps"
  SAILOR_INNER=yes SAILOR_WHEELS=$wheels unshare --mount --pid --fork --kill-child "$0" --root "$root"
  exit
fi

mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$SAILOR_WHEELS" "$root/site"
mount --bind "$(readlink -f "$cuda")" "$root/cuda"
cat > "$root/inside.sh" <<'INSIDE'
set -euo pipefail
for program in mpirun sbatch pkg-config; do
  ! command -v $program > /dev/null || { echo "$program is here"; exit 1; }
done
libraries=$(printf '%s:' /site/nvidia/*/lib)/cuda/lib64
started=$SECONDS
cmake -G Ninja -S /src -B /build -DCMAKE_BUILD_TYPE=Release -DSAILOR_MINIMAL=ON -DSAILOR_TESTS=ON -DSAILOR_WERROR=ON \
  -DCMAKE_PREFIX_PATH=/deps/usr -DCMAKE_LIBRARY_ARCHITECTURE="$(gcc -print-multiarch)" -DTORCH_PREFIX=/site/torch \
  -DTORCH_CUDA_ARCH_LIST=9.0 -DCUDA_TOOLKIT_ROOT_DIR=/cuda -DCUDAToolkit_ROOT=/cuda -DCMAKE_CUDA_COMPILER=/cuda/bin/nvcc \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries" > /tmp/configure.log 2>&1 || { tail -n 30 /tmp/configure.log; exit 1; }
grep "GPUs (SAILOR_CUDA)" /tmp/configure.log
cmake --build /build -- --quiet
echo "ok: built in $((SECONDS - started)) s"
export LD_LIBRARY_PATH=$libraries OMP_NUM_THREADS=1 PATH=/build/bin:$PATH

mkdir -p /tmp/run
cd /tmp/run
cat /src/README.md /src/etc/doc/*.md > text.txt
sed 's/steps: 60/steps: 4/' /src/etc/jobs/quickstart.yaml > job.yaml
cat > plan.json <<'PLAN'
{"sailor_plan": 1, "model": "gpt2-4x64", "global_batch": 64, "microbatch": 4,
 "pipelines": [{"microbatches": 16, "stages": [
   {"layers": [0, 3], "gpu_type": "cpu", "zone": "here", "tp": 1, "recompute": "none"},
   {"layers": [3, 6], "gpu_type": "cpu", "zone": "here", "tp": 1, "recompute": "none"}]}],
 "zero1": false, "interleave": 1}
PLAN
sailor run job.yaml --local --plan plan.json > run.out 2>&1 || { cat run.out; exit 1; }
grep -q "^step 4/4 " run.out || { cat run.out; exit 1; }
echo "ok: two ranks by sailor run"
sailor profile job.yaml -q --out profile > profile.out 2>&1 || { tail -n 20 profile.out; exit 1; }
echo "ok: a profile"
equality --seed 7 --count 3 --dtype fp32 --backend thread
echo "ok: losses and gradients"
mkdir -m 700 meet
for rank in 0 1; do
  SAILOR_RENDEZVOUS=meet SAILOR_RANKS=2 SAILOR_RANK=$rank bench_trainer --stages 2 --microbatches 4 --batch 4 --warm-up 1 --steps 1 job.yaml &
  ranks[rank]=$!
done
wait "${ranks[0]}"
wait "${ranks[1]}"
echo "ok: two ranks by hand"
INSIDE
chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  bash /inside.sh < /dev/null
