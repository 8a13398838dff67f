#!/usr/bin/env bash
# Packs the programs that tests/gpu/run.sh needs for a machine that has only PyTorch and a GPU driver. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/gpu/pack.sh [--build DIR] [OUT]

Builds the trainer's programs against libtorch 2.11 (tests/libtorch_2_11.sh) and puts them into OUT (default: build/gpu-pack)
with their libraries, except those of PyTorch, CUDA and the C++ compiler. On the other machine
  OUT/run PROGRAM...   runs a program with the libraries of python3's torch
That machine needs a C library at least as new as this one's, and the same release of PyTorch. --build DIR packs the programs of an
existing build.
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=
out=$root/build/gpu-pack
while (($#)); do
  case $1 in
    --build) build=${2:?--build needs a directory}; shift ;;
    -h | --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) out=$1 ;;
  esac
  shift
done
programs=(sailor sailor-run sailor-agent sailor-rank sailor-profile sailor-probe equality bench_trainer bench_kernels nccl_tests kernel_tests)

if [[ -z $build ]]; then
  build=$root/build-libtorch
  "$root/tests/libtorch_2_11.sh" --build "${programs[@]}"
fi

mkdir -p "$out/bin" "$out/lib"
torch=$(sed -n 's/^Torch_DIR:PATH=\(.*\)\/share\/cmake\/Torch$/\1/p' "$build/CMakeCache.txt")
[[ -d $torch/lib ]] || { echo "$build was not built with a libtorch of its own" >&2; exit 1; }
libraries=$torch/lib:$(printf '%s:' "$(dirname "$torch")"/nvidia/*/lib)${CUDA_HOME:-/usr/local/cuda}/lib64
for program in "${programs[@]}"; do
  strip -o "$out/bin/$program" "$build/bin/$program"
  chmod +x "$out/bin/$program"
done
# What the loader takes from elsewhere than PyTorch, CUDA, the C library and the compiler's libraries.
for program in "${programs[@]}"; do
  LD_LIBRARY_PATH=$libraries ldd "$out/bin/$program"
done | awk '/=> \// {print $1, $3}' | sort -u | while read -r name path; do
  case $path in "$torch"/* | "$(dirname "$torch")"/nvidia/* | "${CUDA_HOME:-/usr/local/cuda}"*/*) continue ;; esac
  case $name in
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | libutil.so* | ld-linux* | libstdc++.so* | libgcc_s.so* | libgomp.so*) continue ;;
  esac
  cp -L "$path" "$out/lib/$name"
done
missing=$(for program in "${programs[@]}"; do LD_LIBRARY_PATH=$libraries:$out/lib ldd "$out/bin/$program"; done | grep "not found" | sort -u || true)
[[ -z $missing ]] || { echo "libraries that are nowhere: $missing" >&2; exit 1; }
cat > "$out/run" <<'RUN'
#!/bin/sh
# Runs a program of this pack, or one that starts them, with PyTorch's libraries.
here=$(cd "$(dirname "$0")" && pwd)
torch=$(python3 -c 'import importlib.util as u; print(list(u.find_spec("torch").submodule_search_locations)[0])') || exit 1
libraries=$torch/lib
for folder in "$(dirname "$torch")"/nvidia/*/lib; do libraries=$libraries:$folder; done
export LD_LIBRARY_PATH="$libraries:$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" SAILOR_LIBEXEC="$here/bin"
if [ -x "$here/bin/$1" ]; then program=$here/bin/$1; shift; set -- "$program" "$@"; fi
exec "$@"
RUN
chmod +x "$out/run"
echo "$out: $(du -sh "$out" | cut -f1), $(find "$out/lib" -type f | wc -l) libraries"
