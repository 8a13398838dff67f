#!/bin/bash
# Installation and packages: paths fit wherever the prefix is, the admin's file is kept, the two Debian packages hold what they should, and
# everything that has a manual page or a completion stands in it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${SAILOR_BUILD_DIR:-$root/build}
work=$(mktemp -d "${TMPDIR:-/tmp}/sailor-package.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
failures=0
expect() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "NOT OK: $what"; failures=$((failures + 1)); fi
}
equal() { [ "$1" = "$2" ] || { echo "  expected: $2"; echo "  found:    $1"; return 1; }; }
lines() { grep -v '^#' "$1"; }

# Any prefix: everything in it, and the line names the plugin that is there.
cmake --install "$build" --prefix "$work/opt" >"$work/log"
expect "all in the prefix" equal "$(grep -c -v -e "$work/opt" -e '^-- Install configuration' "$work/log" || true)" 0
expect "the line for plugstack.conf" equal "$(lines "$work/opt/etc/slurm/plugstack.conf.d/sailor.conf")" \
  "optional $work/opt/lib/slurm/spank_sailor.so config=$work/opt/etc/sailor/sailor.yaml"
expect "names a plugin" test -f "$work/opt/lib/slurm/spank_sailor.so"
expect "and the planner's library beside it" test -f "$work/opt/lib/slurm/sailor_planner.so"
expect "the profile directory of the site config is there" test -d "$(sed -n 's/^profiles: *\[\(.*\)\]/\1/p' "$work/opt/etc/sailor/sailor.yaml")"
expect "the site config names a catalog" test -f "$(sed -n 's/^catalog: *\([^ ]*\).*/\1/p' "$work/opt/etc/sailor/sailor.yaml")"
expect "the data is where the installed program looks" test -d "$work/opt/share/sailor/platforms"
echo "# mine" >>"$work/opt/etc/sailor/sailor.yaml"
cmake --install "$build" --prefix "$work/opt" >/dev/null
expect "installing again keeps the admin's file" grep -q '^# mine' "$work/opt/etc/sailor/sailor.yaml"

# The usual prefixes use /etc, here below DESTDIR.
DESTDIR=$work/stage cmake --install "$build" --prefix /usr/local >/dev/null
expect "/usr/local: the line is in /etc" equal "$(lines "$work/stage/etc/slurm/plugstack.conf.d/sailor.conf")" \
  "optional /usr/local/lib/slurm/spank_sailor.so config=/etc/sailor/sailor.yaml"

# Only what Slurm calls is exported; no libtorch, MPI or CUDA; libslurm is the process's own.
plugin=$work/opt/lib/slurm/spank_sailor.so
expect "exports are Slurm's" equal "$(nm -D --defined-only "$plugin" | awk '{print $3}' | grep -vE '^(slurm_spank_[a-z_]+|(spank_)?plugin_(name|type|version))$' || true)" ""
needed() { readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\].*/\1/p'; }
expect "what plain commands load needs the C library only" equal "$(needed "$plugin")" libc.so.6
planner=$work/opt/lib/slurm/sailor_planner.so
expect "the planner's library exports what the plugin calls" equal "$(nm -D --defined-only "$planner" | awk '{print $3}' | sort | xargs)" \
  "sailor_keep_script sailor_submit"
expect "and links no more than it needs" equal "$(needed "$planner" | grep -ciE 'torch|mpi|cuda|slurm' || true)" 0

version=$(sed -n 's/^project(sailor VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
expect "the RPM spec has the version of the project" grep -q "^Version: *$version$" "$root/etc/packaging/sailor.spec"
if command -v dpkg-deb >/dev/null; then
  (cd "$build" && cpack -G DEB -B "$work/deb") >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
  deb=$(ls "$work"/deb/sailor_*.deb)
  dpkg-deb -x "$deb" "$work/root"
  expect "deb: the line" equal "$(lines "$work/root/etc/slurm/plugstack.conf.d/sailor.conf")" \
    "optional /usr/lib/slurm/spank_sailor.so config=/etc/sailor/sailor.yaml"
  expect "deb: the profile directory" test -d "$work/root/var/lib/sailor/profiles"
  for file in usr/bin/sailor usr/lib/slurm/spank_sailor.so usr/lib/slurm/sailor_planner.so usr/libexec/sailor/sailor-doctor usr/libexec/sailor/sailor-cluster \
    usr/share/man/man1/sailor.1 usr/share/man/man5/sailor.yaml.5 usr/share/man/man8/spank_sailor.8 usr/share/sailor/catalog.yaml \
    usr/share/bash-completion/completions/sailor usr/share/doc/sailor/admin-guide.md; do
    expect "deb: $file" test -f "$work/root/$file"
  done
  links=$(cd "$work/root/usr/share/doc/sailor" && grep -ohE '\]\([a-z][^)#:]*[)#]' ./*.md | tr -d '()#]' | sort -u)
  expect "deb: the guides have links" test -n "$links"
  expect "deb: no link of a guide is dead" equal "$(cd "$work/root/usr/share/doc/sailor" && for link in $links; do [ -e "$link" ] || echo "$link"; done)" ""
  depends=$(dpkg-deb -f "$deb" Depends)
  expect "deb: needs no libtorch, no MPI" equal "$(grep -ciE 'torch|mpi' <<<"$depends" || true)" 0
  expect "deb: only this release of Slurm" grep -qE 'libslurm[0-9]+' <<<"$depends"
  expect "deb: sailor.yaml is the admin's" equal "$(dpkg-deb --info "$deb" conffiles)" /etc/sailor/sailor.yaml
  expect "deb: bill of materials" python3 "$root/tests/sbom_check.py" "$work/root/usr/share/doc/sailor/sailor.spdx.json" sailor "$depends"
  if [ -f "$build/bin/sailor-run" ]; then
    trainer=$(ls "$work"/deb/sailor-trainer_*.deb)
    dpkg-deb -x "$trainer" "$work/root"
    expect "sailor-trainer: bill of materials" python3 "$root/tests/sbom_check.py" "$work/root/usr/share/doc/sailor-trainer/sailor-trainer.spdx.json" \
      sailor-trainer "$(dpkg-deb -f "$trainer" Depends)"
    expect "sailor-trainer: sailor-run" test -f "$work/root/usr/libexec/sailor/sailor-run"
  fi
  expect "deb: what the linker gives to harden programs" "$root/tests/hardening.sh" --link "$work/root"
fi

# Manual pages and completion know every option and every verb.
verbs=$("$work/opt/bin/sailor" --help | tr '\n' ' ' | sed -n 's/.* Verbs: \(.*\) Exit codes: .*/\1/p' | tr -d ,)
expect "--help names the verbs" test -n "$verbs"
for verb in $verbs; do
  expect "sailor(1) has $verb" grep -qE "^\.(BI|B|BR) \"?$verb\b" "$root/etc/doc/man/sailor.1"
done
for option in $(grep -oE '"sailor-[a-z-]+"' "$root/planner/inputs/submit_option_table.h" | tr -d '"' | sort -u); do
  expect "spank_sailor(8) has --$option" grep -qF -- "\\-\\-${option//-/\\-}" "$root/etc/doc/man/spank_sailor.8"
  expect "the user guide has --$option" grep -qF -- "--$option" "$root/etc/doc/user-guide.md"
done
for key in $(sed -n '/{"sailor_site",/,/});/p' "$root/planner/spec/site_config.cpp" | grep -oE '"[a-z_]+"' | tr -d '"' | sort -u); do
  expect "sailor.yaml(5) has $key" grep -qE "^\.BI? \"?$key:" "$root/etc/doc/man/sailor.yaml.5"
  expect "the example has $key" grep -qE "^#?$key:" "$root/etc/packaging/sailor.yaml.in"
done
if command -v man >/dev/null; then
  for page in "$root"/etc/doc/man/*.[158]; do
    expect "$(basename "$page") is sound" equal "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)" ""
  done
fi
words=$(PATH=$work/opt/bin:$PATH bash -c '. "$1"; COMP_WORDS=(sailor pr); COMP_CWORD=1; _sailor; echo "${COMPREPLY[@]}"' -- "$root/etc/completion/sailor")
expect "completion of verbs" equal "$words" "probe profile"
words=$(PATH=$work/opt/bin:$PATH bash -c '. "$1"; COMP_WORDS=(sailor plan --max-c); COMP_CWORD=2; _sailor; echo "${COMPREPLY[@]}"' -- "$root/etc/completion/sailor")
expect "completion of options" equal "$words" "--max-cost"
[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
echo "all passed"
