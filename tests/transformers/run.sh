#!/usr/bin/env bash
# Holds the trainer's models against the transformers package: logits, loss and gradients from directories that the package saved,
# and what the trainer exports against what the package makes of it. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/transformers/run.sh MODEL_CHECK [SEED]

MODEL_CHECK is the program of that name. The package and what it needs (5 GB) are installed into a virtual environment once:
SAILOR_TRANSFORMERS_VENV, default $XDG_CACHE_HOME/sailor/transformers.
USAGE
}
case ${1:-} in -h | --help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$(realpath "$1")
seed=${2:-$RANDOM}
venv=${SAILOR_TRANSFORMERS_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/transformers}
skip() { echo "skipped: $*"; exit 77; }

if ! "$venv/bin/python" -c 'import torch, transformers' 2> /dev/null; then
  python3 -m venv "$venv" || skip "python3 cannot make a virtual environment"
  "$venv/bin/pip" install -q torch==2.11.0 transformers==5.23.0 numpy || skip "the packages cannot be downloaded"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 TRANSFORMERS_VERBOSITY=error OMP_NUM_THREADS=1
echo "# seed $seed"
"$venv/bin/python" "$here/make.py" "$work" "$seed" 2> "$work/make.log" || { cat "$work/make.log"; exit 1; }
status=0
echo "model,family,logit_err,loss_err,grad_err,worst,ok"
for model in "$work"/*/; do (cd "$work" && "$check" "$(basename "$model")") || status=1; done > "$work/checked.csv"
cat "$work/checked.csv"
for family in $("$check" --families); do
  cut -d, -f2 "$work/checked.csv" | grep -qx "$family" || { echo "models.py has no model of family $family"; status=1; }
done
echo "model,tensors,logits_equal,export_identical,saved_again_identical,ok"
"$venv/bin/python" "$here/compare.py" "$work" 2> "$work/compare.log" || { cat "$work/compare.log"; status=1; }
exit "$status"
