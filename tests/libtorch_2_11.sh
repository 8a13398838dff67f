#!/usr/bin/env bash
# Builds the trainer against libtorch 2.11 (CUDA 13.0), the release on GPU machines, and runs its tests on the CPU. This checks
# that it compiles, links and computes the same; it does not test CUDA. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/libtorch_2_11.sh [WORK]
       tests/libtorch_2_11.sh --build TARGET...     only build these targets, in the default WORK
       tests/libtorch_2_11.sh --wheels              only unpack the wheels, and print their directory

WORK (default: $XDG_CACHE_HOME/sailor/libtorch-2.11) keeps the downloaded wheels (1.7 GB) and the build between runs.
Needs the CUDA 13.0 toolkit ($CUDA_HOME, /usr/local/cuda), pip and unzip.
USAGE
}
case ${1:-} in -h | --help) usage; exit 0 ;; esac

targets=()
wheels=no
case ${1:-} in
  --build) shift; targets=("$@"); set -- ;;
  --wheels) wheels=yes; set -- ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=${1:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/libtorch-2.11}
cuda=${CUDA_HOME:-/usr/local/cuda}
skip() { echo "skipped: $*"; exit 77; }
[[ $wheels == yes || -x $cuda/bin/nvcc ]] || skip "no CUDA toolkit in $cuda"
command -v pip > /dev/null || skip "no pip"
command -v unzip > /dev/null || skip "no unzip"

mkdir -p "$work"
if [[ ! -e $work/site/complete ]]; then
  rm -rf "$work/wheels" "$work/site"
  pip download -q --no-deps -d "$work/wheels" torch==2.11.0 nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5 \
    nvidia-cufile==1.15.1.6 || skip "the wheels cannot be downloaded"
  for wheel in "$work"/wheels/*.whl; do unzip -qo "$wheel" -d "$work/site"; done
  rm -r "$work/wheels"
  touch "$work/site/complete"
fi
site=$work/site
[[ $wheels == no ]] || { echo "$site"; exit; }
libraries=$site/nvidia/cusparselt/lib:$site/nvidia/cu13/lib:$site/nvidia/nvshmem/lib:$cuda/lib64

# The torch folder itself is the prefix: with share/cmake, an installed Debian libtorch would be picked silently.
cmake -G Ninja -S "$root" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$site/torch" \
  -DTORCH_CUDA_ARCH_LIST=9.0 -DCUDA_TOOLKIT_ROOT_DIR="$cuda" -DCMAKE_CUDA_COMPILER="$cuda/bin/nvcc" \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries" \
  -DSAILOR_SLURM=OFF -DSAILOR_TESTS=ON -DSAILOR_WERROR=ON > "$work/configure.log" 2>&1 || { tail -n 30 "$work/configure.log"; exit 1; }
grep -q "Found Torch: $site/torch" "$work/configure.log" || { echo "another libtorch was picked: see $work/configure.log"; exit 1; }
if ((${#targets[@]})); then
  cmake --build "$work/build" --target "${targets[@]}" -- --quiet
  exit
fi
cmake --build "$work/build" --target trainer_tests device_tests equality -- --quiet
export LD_LIBRARY_PATH=$libraries OMP_NUM_THREADS=1
"$work/build/bin/trainer_tests" --gtest_brief=1
"$work/build/bin/device_tests" --gtest_brief=1
"$work/build/bin/equality" --seed 7 --count 6 --dtype fp32 --backend thread
"$work/build/bin/equality" --seed 7 --count 4 --dtype fp64 --backend thread
