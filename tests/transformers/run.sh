#!/usr/bin/env bash
# Compares the trainer's models with the transformers package: logits, loss and gradients of models that the package saved, and of models
# that the trainer exported and the package loads; and its adapters with the PEFT library. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/transformers/run.sh MODEL_CHECK [SEED]

MODEL_CHECK is the program of that name. The package and its dependencies (5 GB) are installed once into a virtual environment:
SAILOR_TRANSFORMERS_VENV, default $XDG_CACHE_HOME/sailor/transformers.
USAGE
}
case ${1:-} in -h | --help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$(realpath "$1")
seed=${2:-$RANDOM}
venv=${SAILOR_TRANSFORMERS_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/transformers}
skip() { echo "skipped: $*"; exit 77; }

if ! "$venv/bin/python" -c 'import torch, transformers, peft' 2> /dev/null; then
  python3 -m venv "$venv" || skip "python3 cannot make a virtual environment"
  "$venv/bin/pip" install -q torch==2.11.0 transformers==5.23.0 peft==0.21.2 numpy || skip "the packages cannot be downloaded"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 TRANSFORMERS_VERBOSITY=error OMP_NUM_THREADS=1
echo "# seed $seed"
"$venv/bin/python" "$here/make.py" "$work" "$seed" 2> "$work/make.log" || { cat "$work/make.log"; exit 1; }
status=0
echo "model,family,logit_err,loss_err,grad_err,worst,ok"
for model in "$work"/*/; do (cd "$work" && "$check" "$(basename "$model")" "$seed") || status=1; done > "$work/checked.csv"
cat "$work/checked.csv"
for family in $("$check" --families); do
  cut -d, -f2 "$work/checked.csv" | grep -qx "$family" || { echo "models.py has no model of family $family"; status=1; }
done
echo "model,tensors,logits_equal,export_identical,saved_again_identical,ok"
"$venv/bin/python" "$here/compare.py" "$work" 2> "$work/compare.log" || { cat "$work/compare.log"; status=1; }
echo "model,adapters,logit_err,loss_err,grad_err,merged_err,ok"
"$venv/bin/python" "$here/compare_adapters.py" "$work" 2> "$work/adapters.log" || { cat "$work/adapters.log"; status=1; }
exit "$status"
