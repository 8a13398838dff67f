#!/usr/bin/env bash
# Builds the trainer against libtorch 2.11 (CUDA 13.0), the release on GPU machines, and runs tests on the CPU. This checks
# that it compiles, links and computes the same; it does not test CUDA. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/libtorch_2_11.sh [-j N] [--all | --build TARGET... | --wheels | --python]

  (no option)   build the programs that use libtorch, run the tests of trainers on fake GPUs and compare losses and gradients
  --all         also build sailor-checkpoint and the benchmark, and run the trainer's unit tests
  --build       only build these targets, in build-libtorch/bin
  --wheels      only unpack the wheels, and print their directory
  --python      only that, and what a Python program needs besides; print its PYTHONPATH
  -j N          compile with N jobs (default: one per core)

$XDG_CACHE_HOME/sailor/libtorch-2.11 keeps the unpacked wheels (1.4 GB), build-libtorch the build.
Needs the CUDA 13.0 toolkit ($CUDA_HOME, /usr/local/cuda), pip and unzip.
USAGE
}

action=test
jobs=$(nproc)
targets=(sailor-rank sailor-profile device_tests equality)
while (($#)); do
  case $1 in
    --all) action=all; targets+=(sailor-checkpoint bench_trainer trainer_tests elastic_tests kernel_tests) ;;
    --build) action=build; shift; targets=("$@"); break ;;
    --wheels) action=wheels ;;
    --python) action=python ;;
    -j) jobs=${2:?-j needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/libtorch-2.11
build=$root/build-libtorch
cuda=${CUDA_HOME:-/usr/local/cuda}
skip() { echo "skipped: $*"; exit 77; }
[[ $action == wheels || $action == python || -x $cuda/bin/nvcc ]] || skip "no CUDA toolkit in $cuda"
command -v pip > /dev/null || skip "no pip"
command -v unzip > /dev/null || skip "no unzip"

mkdir -p "$work"
exec 9> "$work/lock"
flock 9   # other checkouts use the same wheels
if [[ ! -e $work/site/complete ]]; then
  rm -rf "$work/wheels" "$work/site"
  pip download -q --no-deps --retries 1 -d "$work/wheels" torch==2.11.0 nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5 \
    nvidia-cufile==1.15.1.6 2> "$work/pip.log" || skip "the wheels cannot be downloaded: $(tail -n 1 "$work/pip.log")"
  for wheel in "$work"/wheels/*.whl; do unzip -qo "$wheel" -d "$work/site"; done
  rm -r "$work/wheels"
  touch "$work/site/complete"
fi
# What PyTorch imports in a Python program; the libraries need none of it.
if [[ $action == python && ! -e $work/python/complete ]]; then
  rm -rf "$work/python"
  pip install -q --retries 1 --target "$work/python" typing_extensions sympy networkx jinja2 filelock fsspec 2> "$work/pip.log" ||
    skip "what PyTorch imports cannot be downloaded: $(tail -n 1 "$work/pip.log")"
  touch "$work/python/complete"
fi
flock -u 9
exec 9>&-
site=$work/site
[[ $action != python ]] || { echo "$site:$work/python"; exit; }
[[ $action != wheels ]] || { echo "$site"; exit; }
libraries=$site/nvidia/cusparselt/lib:$site/nvidia/cu13/lib:$site/nvidia/nvshmem/lib:$cuda/lib64

# Only programs that are kept are optimized.
unoptimized=OFF
[[ $action != test ]] || unoptimized=ON
# The torch folder itself is the prefix: with share/cmake, an installed Debian libtorch would be picked silently.
mkdir -p "$build"
cmake -G Ninja -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DTORCH_PREFIX="$site/torch" \
  -DTORCH_CUDA_ARCH_LIST=9.0 -DCUDA_TOOLKIT_ROOT_DIR="$cuda" -DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries" -DSAILOR_CUDA=ON \
  -DSAILOR_SLURM=OFF -DSAILOR_TESTS=ON -DSAILOR_WERROR=ON -DSAILOR_TORCH_UNOPTIMIZED=$unoptimized > "$build/configure.log" 2>&1 || { tail -n 30 "$build/configure.log"; exit 1; }
grep -q "^Torch_DIR:PATH=$site/torch/" "$build/CMakeCache.txt" || { echo "another libtorch was picked: see $build/CMakeCache.txt"; exit 1; }
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}   # as tests/run.sh: most files are compiled the same way
cmake --build "$build" -j "$jobs" --target "${targets[@]}" -- --quiet
[[ $action != build ]] || exit 0

export LD_LIBRARY_PATH=$libraries OMP_NUM_THREADS=1
[[ $action != all ]] || { "$build/bin/trainer_tests" --gtest_brief=1; "$build/bin/elastic_tests" --gtest_brief=1; "$build/bin/kernel_tests" --gtest_brief=1; }
"$build/bin/device_tests" --gtest_brief=1
"$build/bin/equality" --seed 7 --count 2 --dtype fp32 --backend thread
"$build/bin/equality" --seed 7 --count 2 --dtype fp64 --backend thread
