#!/usr/bin/env bash
# Everything that needs a GPU, in one command. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/gpu/run.sh [--programs DIR] [--out DIR] [--peak-flops N] [--only PART]

Needs a machine with an NVIDIA GPU, its driver and PyTorch 2.x. Tests a communicator that is aborted and rebuilt; losses and gradients of
every model family, compared with processors, in fp32, bf16 and fp16; a checkpoint from and to the device; profiles, and their predictions
compared with measured steps; steps of GPT-2 124M and 1.5B, compared with PyTorch eager and compiled. Prints a table, writes gpu.json and
gpu.log to DIR (default: $OUT, else the current directory). Takes about ten minutes. Without a GPU it prints "no GPU" and exits with 0.

  --programs DIR   a bundle made by tests/gpu/pack.sh (default: build/gpu-pack, else build/bin)
  --peak-flops N   bf16 peak of the GPU's data sheet, for the MFU (default: measured on large matrix products)
  --only PART      communicator, equality, prediction or speed
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${OUT:-.}
programs=
arguments=()
while (($#)); do
  case $1 in
    --programs) programs=${2:?--programs needs a directory}; shift ;;
    --out) out=${2:?--out needs a directory}; shift ;;
    --peak-flops | --only) arguments+=("$1" "${2:?$1 needs a value}"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

if [[ ! -e /dev/nvidiactl && ! -e /proc/driver/nvidia/version ]]; then
  echo "no GPU"
  exit 0
fi
if [[ -z $programs ]]; then
  programs=$root/build/bin
  if [[ -d $root/build/gpu-pack ]]; then programs=$root/build/gpu-pack; fi
fi
if [[ -x $programs/run ]]; then  # a pack: its programs find PyTorch's libraries, and their own
  exec "$programs/run" python3 "$root/tests/gpu/check_gpu.py" --programs "$programs/bin" --out "$out" "${arguments[@]}"
fi
exec python3 "$root/tests/gpu/check_gpu.py" --programs "$programs" --out "$out" "${arguments[@]}"
