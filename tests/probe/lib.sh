# Shared by the tests of `sailor probe` and `sailor profile` (sourced): a scratch directory, verdicts, figures out of a profile.
set -euo pipefail
bin=${SAILOR_BUILD_DIR:?}/bin
work=$(mktemp -d)
export SAILOR_CONFIG=$work/none
failures=0
clean_up() { :; }
trap 'clean_up; rm -rf -- "$work"' EXIT

skip() { echo "skipped: $1"; exit 77; }
ok() { echo "ok: $1"; }
not_ok() { failures=$((failures + 1)); echo "NOT OK: $1"; }
expect() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then ok "$what"; else not_ok "$what"; fi
}
finish() { [ $failures = 0 ] || { echo "$failures failed"; exit 1; }; echo "all passed"; }

# figure FILE FROM TO SCOPE KEY: a number of the link between two GPU types.
figure() {
  python3 -c '
import json, sys
file, a, b, scope, key = sys.argv[1:]
for link in json.load(open(file))["links"]:
    if (link["from"].get("gpu_type"), link["to"].get("gpu_type"), link["scope"]) == (a, b, scope): print(link[key])' "$@"
}
# measurements FILE [BYTES]: how many are in it, of up to BYTES. Quick: it is asked while a probe runs.
measurements() { grep -o '"bytes":[0-9]*' "$1" | awk -F: -v most="${2:-1e18}" '$2 <= most {++n} END {print n + 0}'; }
# within PERCENT WANTED FOUND
within() {
  awk -v p="$1" -v w="$2" -v f="$3" 'BEGIN {printf "  wanted %g, found %g: %+.1f %%\n", w, f, 100 * (f / w - 1); exit !(f >= w * (1 - p / 100) && f <= w * (1 + p / 100))}'
}
