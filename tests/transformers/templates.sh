#!/usr/bin/env bash
# Compares chat templates as `sailor tokenize` renders them with the transformers library. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/transformers/templates.sh TEMPLATE_CHECK SAILOR_TOKENIZE [SEED [COUNT [TEMPLATE...]]]

The first two are the programs of these names. COUNT random conversations (default: 100) are rendered for each template of chat_templates.py,
and random fragments of templates; then conversations are tokenized, and the tokens and answers compared. TEMPLATE is the file of another
template, a tokenizer_config.json, or a directory of them; only these are rendered then. The library is installed once into a virtual
environment: SAILOR_TEMPLATES_VENV, default $XDG_CACHE_HOME/sailor/templates.
USAGE
}
case ${1:-} in -h | --help) usage; exit 0 ;; '') usage >&2; exit 2 ;; esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=$(realpath "$1")
program=$(realpath "$2")
seed=${3:-$RANDOM}
count=${4:-100}
shift $(($# < 4 ? $# : 4))
venv=${SAILOR_TEMPLATES_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/templates}
skip() { echo "skipped: $*"; exit 77; }

if ! "$venv/bin/python" -c 'import transformers, jinja2, tokenizers' 2> /dev/null; then
  python3 -m venv "$venv" || skip "python3 cannot make a virtual environment"
  "$venv/bin/pip" install -q transformers==5.23.0 jinja2==3.1.6 || skip "the packages cannot be downloaded"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 TRANSFORMERS_VERBOSITY=error
echo "# seed $seed"
"$venv/bin/python" -W ignore "$here/templates_check.py" "$check" "$seed" "$count" "$@"
(($# == 0)) || exit 0
"$venv/bin/python" -W ignore "$here/conversations_check.py" "$program" "$work" "$seed" "$count"
