#!/usr/bin/env bash
# Makes every kind of page and opens it in headless Chromium (check_page.py). Skipped, with exit code 77, where there is none.
set -euo pipefail

case ${1:-} in
  -h | --help) echo "usage: pages_test.sh BIN_DIR [SCREENSHOTS]"; exit 0 ;;
esac
bin=$(cd "${1:?usage: pages_test.sh BIN_DIR [SCREENSHOTS]}" && pwd)
screenshots=${2:+--screenshots $(realpath -m "$2")}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$here/../golden/fixtures/." "$scratch"
cd "$scratch"
export SAILOR_CONFIG=sailor.yaml

"$bin/sailor" simulate job.yaml plan.json --html simulated.html > /dev/null
"$bin/sailor" report sailor-42 -o run.html > /dev/null
"$bin/sailor" report sailor-42 --config nowhere.yaml -o run-without-inputs.html > /dev/null
# A wide plan of long names: 24 pipelines of three stages.
python3 - <<'PYTHON'
import json
plan = json.load(open("plan.json"))
stage = lambda a, b, kind, zone: {"layers": [a, b], "gpu_type": kind, "zone": zone, "tp": 1}
plan.update(global_batch=96, microbatch=1, pipelines=[
    {"microbatches": 4, "stages": [stage(0, 1 + i % 3, "quick", "east"), stage(1 + i % 3, 5, "steady", "west"),
                                   stage(5, 6, "steady", "west")]} for i in range(24)])
json.dump(plan, open("wide.json", "w"))
PYTHON
sed 's/global_batch: 8/global_batch: 96/; s/name: tiny/name: a-model-with-a-name-that-nobody-would-want-to-type-twice/' job.yaml > wide.yaml
sed -i 's/"model": *"tiny"/"model": "a-model-with-a-name-that-nobody-would-want-to-type-twice"/' wide.json
"$bin/sailor" simulate wide.yaml wide.json --html wide.html > /dev/null
exec "$here/check_page.py" $screenshots simulated.html run.html run-without-inputs.html wide.html
