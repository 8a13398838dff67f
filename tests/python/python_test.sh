#!/usr/bin/env bash
# Installs the Python package without a network, runs its unit tests against the built program, and the example notebook. Skipped, with
# exit code 77, without Python 3.9.
set -euo pipefail

case ${1:-} in
  -h | --help) echo "usage: python_test.sh BIN_DIR"; exit 0 ;;
esac
bin=$(cd "${1:?usage: python_test.sh BIN_DIR}" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
package=$root/planner/python
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2> /dev/null || { echo "skipped: there is no Python 3.9 or later"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for variable in $(compgen -e | grep -E '^(SAILOR_|PYTHON|PIP_|VIRTUAL_ENV)'); do unset "$variable"; done
export PYTHONDONTWRITEBYTECODE=1 PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# fresh NAME: an empty virtual environment.
fresh() { python3 -m venv "$scratch/$1" > /dev/null 2>&1; }
# origin PYTHON: the directory that the package is imported from.
origin() { (cd / && "$1" -c 'import os, sailor; print(os.path.dirname(sailor.__file__))'); }
backend() { (cd "$package" && python3 -c "import backend; print(backend.$1('$scratch'))"); }

if fresh venv; then
  python=$scratch/venv/bin/python
  "$python" -m pip install --quiet --no-index "$package"
  [[ $(origin "$python") == "$scratch"/venv/* ]]
  fresh editable
  "$scratch/editable/bin/python" -m pip install --quiet --no-index --editable "$package"
  [[ $(origin "$scratch/editable/bin/python") == "$package/sailor" ]]
  fresh archive
  "$scratch/archive/bin/python" -m pip install --quiet --no-index "$scratch/$(backend build_sdist)"
  [[ $(origin "$scratch/archive/bin/python") == "$scratch"/archive/* ]]
  echo "installed by pip: from the source tree, editable, and from an archive"
else
  echo "python3 -m venv does not work here: the wheel is unpacked, pip is not tried"
  python3 -m zipfile -e "$scratch/$(backend build_wheel)" "$scratch/site"
  python=python3
  export PYTHONPATH=$scratch/site
fi

# Where measured profiles are.
cp -r "$root/tests/golden/fixtures" "$scratch/site-files"
cd "$scratch/site-files"
SAILOR_PROGRAM=$bin/sailor SAILOR_CONFIG=sailor.yaml SAILOR_SOURCE_DIR=$root "$python" -W error "$here/test_sailor.py"
"$python" -W error "$here/test_sailor_steps.py"
# Somewhere else: with the installed catalog alone.
mkdir "$scratch/notebook"
cd "$scratch/notebook"
echo 'sailor_site: 1' > site.yaml
SAILOR_CONFIG=site.yaml PATH=$bin:$PATH "$python" "$here/run_notebook.py" "$package/example.ipynb"
sed -n "/^    # job.yaml/,/^$/s/^    //p" "$root/README.md" > job.yaml   # the same job
"$bin/sailor" simulate --config site.yaml --format json job.yaml plan.json > /dev/null
