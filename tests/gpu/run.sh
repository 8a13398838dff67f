#!/usr/bin/env bash
# Everything that needs a GPU, in one command. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/gpu/run.sh [--programs DIR] [--out DIR] [--peak-flops N] [--only PART] [--device cpu]

Needs a machine with an NVIDIA GPU, its driver and PyTorch 2.x. Tests and times every kernel; tests a communicator that is aborted and
rebuilt; losses and gradients of every model family, compared with processors, in fp32, bf16 and fp16; a checkpoint from and to the device;
profiles, and their predictions compared with measured steps; steps of GPT-2 124M and 1.5B, compared with PyTorch eager and compiled.
Also tests up to four ranks over NCCL, which share the GPUs if there are fewer: TP, stages, replicas, unlike TP degrees, ZeRO-1; a rank
killed in the middle of a sum, its replacement, changes of the plan, restarts from checkpoints on processors and back; a probe.
Prints a table and what was not covered, writes gpu.json and gpu.log to DIR (default: $OUT, else the current directory). Takes about
fifteen minutes. Without a GPU it prints "no GPU" and exits with 0.

  --programs DIR   a bundle made by tests/gpu/pack.sh (default: build/gpu-pack, else build/bin)
  --peak-flops N   bf16 peak of the GPU's data sheet, for the MFU (default: measured on large matrix products)
  --only PART      kernels, communicator, equality, ranks, prediction or speed
  --device cpu     a rehearsal without a GPU: the part `ranks`, on processors and over sockets
USAGE
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
out=${OUT:-.}
programs=
device=gpu
arguments=()
while (($#)); do
  case $1 in
    --programs) programs=${2:?--programs needs a directory}; shift ;;
    --out) out=${2:?--out needs a directory}; shift ;;
    --device) device=${2:?--device needs a value}; arguments+=("$1" "$2"); shift ;;
    --peak-flops | --only) arguments+=("$1" "${2:?$1 needs a value}"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

if [[ $device != cpu && ! -e /dev/nvidiactl && ! -e /proc/driver/nvidia/version ]]; then
  echo "no GPU"
  exit 0
fi
if [[ -z $programs ]]; then
  programs=$root/build/bin
  if [[ -d $root/build/gpu-pack ]]; then programs=$root/build/gpu-pack; fi
fi
if [[ -x $programs/run ]]; then  # a pack: its programs find PyTorch's libraries, and their own
  exec "$programs/run" python3 -B "$root/tests/gpu/check_gpu.py" --programs "$programs/bin" --out "$out" "${arguments[@]}"
fi
exec python3 -B "$root/tests/gpu/check_gpu.py" --programs "$programs" --out "$out" "${arguments[@]}"
