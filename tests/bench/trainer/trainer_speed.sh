#!/usr/bin/env bash
# Speed of the trainer on this machine's CPU, as ratios of alternating runs. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: trainer_speed.sh BIN_DIR [--python PYTHON] [--rounds N] [--job JOB.yaml]

Runs in turn, N times (default 5): one rank with two threads; the same model in PyTorch eager and compiled, when
PYTHON (default: python3) has torch; two stages and two TP ranks with one thread each. Prints the tokens/s of each
round, the ratios of medians, and the all-reduce of 64 MiB over sockets against MPI_Allreduce.
USAGE
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=python3 rounds=5 job=$here/gpt2-124m.yaml bin=
while (($#)); do
  case $1 in
    --python) python=${2:?--python needs a program}; shift ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --job) job=${2:?--job needs a file}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) bin=$1 ;;
  esac
  shift
done
[[ -n $bin ]] || { usage >&2; exit 2; }

results=$(mktemp)
trap 'rm -f "$results"' EXIT
run_mpi() {  # RANKS COMMAND...
  local ranks=$1 root=()
  shift
  if ((EUID == 0)); then root=(--allow-run-as-root); fi
  mpirun "${root[@]}" --oversubscribe --bind-to none --mca btl self,tcp -x OMP_NUM_THREADS=1 -n "$ranks" "$@"
}
note() {  # NAME: reads a CSV row whose last field is tokens/s
  local row
  row=$(cat)
  [[ -n $row ]] || return 0
  echo "$1 ${row##*,}" | tee -a "$results"
}
has_torch=true
"$python" -c 'import torch' 2> /dev/null || { has_torch=false; echo "skipped: $python has no torch"; }
for ((round = 0; round < rounds; ++round)); do
  "$bin/bench_trainer" "$job" --threads 2 | note one_rank
  if $has_torch; then
    "$python" "$here/pytorch_step.py" --threads 2 | note pytorch_eager
    "$python" "$here/pytorch_step.py" --threads 2 --compile --warm-up 3 | note pytorch_compile
  fi
  "$bin/bench_trainer" "$job" --threads 2 --batch 16 --microbatches 16 --steps 3 --warm-up 1 | note one_rank_16
  run_mpi 2 "$bin/bench_trainer" "$job" --stages 2 --batch 16 --microbatches 16 --steps 3 --warm-up 1 | note pp2_16
  run_mpi 2 "$bin/bench_trainer" "$job" --tp 2 | note tp2
done
awk '
  {values[$1] = values[$1] " " $2}
  function median(name,   n, v, i, j, t) {
    n = split(values[name], v, " ")
    for (i = 1; i <= n; ++i) for (j = i + 1; j <= n; ++j) if (v[j] + 0 < v[i] + 0) {t = v[i]; v[i] = v[j]; v[j] = t}
    return n ? v[int((n + 1) / 2)] : 0
  }
  function ratio(label, a, b, wanted) {
    if (median(b) > 0) printf "%-42s %.3f   (wanted: %s)\n", label, median(a) / median(b), wanted
  }
  END {
    ratio("one rank / PyTorch eager", "one_rank", "pytorch_eager", "1.05")
    ratio("one rank / torch.compile", "one_rank", "pytorch_compile", "1.00")
    ratio("two stages, 16 microbatches / one rank", "pp2_16", "one_rank_16", "0.85")
    ratio("two TP ranks / one rank", "tp2", "one_rank", "0.85")
  }' "$results"
echo "all-reduce: bytes,ours_s,mpi_s,ratio   (wanted: 0.8)"
run_mpi 2 "$bin/bench_all_reduce"
