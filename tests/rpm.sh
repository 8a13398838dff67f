#!/bin/bash
# Builds the RPM packages of a clean checkout of HEAD with rpmbuild, checks the spec with rpmlint, and installs, upgrades and removes them in a
# root of its own: an edited site config stays. The distribution's packages are not asked for: this machine has the libraries as Debian
# packages.
#
# usage: tests/rpm.sh [--with-trainer]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  "") without=(--without trainer) ;;
  --with-trainer) without=() ;;
  *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
for program in rpm rpmbuild rpmlint; do
  command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }
done
work=$(mktemp -d "${TMPDIR:-/tmp}/sailor-rpm.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
failures=0
expect() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "NOT OK: $what"; failures=$((failures + 1)); fi
}
spec=$root/etc/packaging/sailor.spec
version=$(sed -n 's/^project(sailor VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
expect "the spec has the version of the project" grep -q "^Version: *$version$" "$spec"
expect "rpmlint: no error" grep -q ' 0 errors' <(rpmlint "$spec" 2>&1)

git -C "$root" archive --prefix="sailor-$version/" -o "$work/sailor-$version.tar.gz" HEAD
# Flags and directories of such a distribution, which differ from those of Debian's rpm.
rpmbuild -tb --nodeps --define "_topdir $work/rpmbuild" --define "debug_package %{nil}" "${without[@]}" \
  --define "optflags -O2 -g1 -fstack-protector-strong -Wp,-U_FORTIFY_SOURCE -Wp,-D_FORTIFY_SOURCE=2 -fcf-protection" \
  --define "_sharedstatedir /var/lib" --define "build_ldflags -Wl,-z,relro -Wl,-z,now" \
  "$work/sailor-$version.tar.gz" \
  >"$work/log" 2>&1 || { tail -30 "$work/log"; exit 1; }
packages=("$work"/rpmbuild/RPMS/*/*.rpm)
echo "${packages[@]##*/}"

into=$work/root
mkdir -p "$into"
rpm() { command rpm --root "$into" --nodeps --noscripts "$@"; }
command rpm --root "$into" --initdb
expect "installs" rpm -i "${packages[@]}"
for file in /usr/bin/sailor /etc/sailor/sailor.yaml /etc/slurm/plugstack.conf.d/sailor.conf; do expect "$file" test -f "$into$file"; done
line=$(grep -v '^#' "$into/etc/slurm/plugstack.conf.d/sailor.conf")
read -r _ plugin _ <<<"$line"
expect "the line names a plugin" test -f "$into$plugin"
expect "with the planner's library beside it" test -f "$into${plugin%/*}/sailor_planner.so"
expect "the profile directory" test -d "$into/var/lib/sailor/profiles"
expect "every installed file is in a package" test -z "$(grep 'Installed (but unpackaged)' "$work/log")"
expect "the plugin is position-independent and read-only after relocation" grep -q GNU_RELRO <(readelf -lW "$into$plugin")
expect "with checked buffers" grep -qE '__(stack_chk_fail|[a-z]+_chk)' <(nm -D "$into${plugin%/*}/sailor_planner.so")
echo "# mine" >>"$into/etc/sailor/sailor.yaml"
expect "an upgrade" rpm -U --force "${packages[@]}"
expect "keeps an edited site config" grep -q '^# mine' "$into/etc/sailor/sailor.yaml"
expect "goes" rpm -e $(command rpm --root "$into" -qa 'sailor*')
expect "without the line for plugstack.conf" test ! -e "$into/etc/slurm/plugstack.conf.d/sailor.conf"
expect "without the plugin" test ! -e "$into$plugin"
expect "and leaves the edited site config" grep -q '^# mine' "$into/etc/sailor/sailor.yaml.rpmsave"
[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
