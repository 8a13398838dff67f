#!/usr/bin/env bash
# Compares `sailor tokenize` with the tokenizers library on mixed multilingual text. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/transformers/tokenizers.sh SAILOR_TOKENIZE [SEED [MEGABYTES [TOKENIZER.json...]]]

SAILOR_TOKENIZE is the program of that name. Tokenizers of every kind are trained on text made from the seed, and compared on other text
of that size (default: 10 MB); or those that are given are. The library is installed once into a virtual environment:
SAILOR_TOKENIZERS_VENV, default $XDG_CACHE_HOME/sailor/tokenizers.
USAGE
}
case ${1:-} in -h | --help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=$(realpath "$1")
seed=${2:-$RANDOM}
megabytes=${3:-10}
shift $(($# < 3 ? $# : 3))
venv=${SAILOR_TOKENIZERS_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/tokenizers}
skip() { echo "skipped: $*"; exit 77; }

if ! "$venv/bin/python" -c 'import google.protobuf, sentencepiece, tokenizers' 2> /dev/null; then
  python3 -m venv "$venv" || skip "python3 cannot make a virtual environment"
  "$venv/bin/pip" install -q tokenizers==0.23.3 sentencepiece==0.2.3 protobuf || skip "the packages cannot be downloaded"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "# seed $seed"
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "$here/tokenizers_check.py" "$program" "$work" "$seed" "$megabytes" "$@"
