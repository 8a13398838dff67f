#!/usr/bin/env bash
# Builds sailor-tokenize with Apache Arrow's library of the pyarrow wheel, and compares the tokens of Parquet files, and of their texts as
# JSONL. Exit 77 = skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/parquet.sh [-j N] [--seed N]

  -j N      compile with N jobs (default: one per core)
  --seed N  of the texts and of the damaged files

$XDG_CACHE_HOME/sailor/pyarrow keeps the unpacked wheel (150 MB), build-parquet the build. Needs pip and a Python that the wheel is for.
USAGE
}

jobs=$(nproc)
seed=$RANDOM
while (($#)); do
  case $1 in
    -j) jobs=${2:?-j needs a number}; shift ;;
    --seed) seed=${2:?--seed needs a number}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
site=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/pyarrow
build=$root/build-parquet
skip() { echo "skipped: $*"; exit 77; }
command -v pip > /dev/null || skip "no pip"

mkdir -p "$site"
exec 9> "$site/lock"
flock 9   # other checkouts use the same wheel
if [[ ! -e $site/complete ]]; then
  pip install -q --no-deps --retries 1 --target "$site" pyarrow==26.0.1 2> "$site/pip.log" ||
    skip "the wheel cannot be downloaded: $(tail -n 1 "$site/pip.log")"
  touch "$site/complete"
fi
flock -u 9
exec 9>&-

libraries=$site/pyarrow
cmake -G Ninja -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DSAILOR_SLURM=OFF -DSAILOR_WERROR=ON \
  -DPARQUET_INCLUDE_DIR="$libraries/include" -DPARQUET_LIBRARY="$(echo "$libraries"/libparquet.so.*)" \
  -DARROW_LIBRARY="$(echo "$libraries"/libarrow.so.*)" > "$build.log" 2>&1 || { tail -n 30 "$build.log"; exit 1; }
rm "$build.log"
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root}
cmake --build "$build" -j "$jobs" --target sailor-tokenize -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=$site python3 "$root/tests/parquet_check.py" "$build/bin/sailor-tokenize" "$work" "$seed"
