#!/bin/bash
# Checks every ELF file below a directory: position-independent, relocations read-only before the program starts, no executable stack, no search
# path of its own; and, unless --link, what the compiler's flags of distributions give: a stack protector, checked copies
# (_FORTIFY_SOURCE), with -fcf-protection also marked branch targets.
#
# usage: tests/hardening.sh [--link] [--cf-protection] DIR
#     --link            of a build without the flags of a distribution
#     --cf-protection   with this flag
set -euo pipefail
compiler=yes branches=no
while [ $# -gt 1 ]; do
  case $1 in
    --link) compiler=no ;;
    --cf-protection) branches=yes ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
files=0 failures=0
has() { grep -qE -- "$2" <<<"$1"; }
wrong() { echo "NOT OK: $file: $1"; failures=$((failures + 1)); }
while IFS= read -r -d '' file; do
  cmp -s -n 4 "$file" <(printf '\177ELF') || continue
  files=$((files + 1))
  dynamic=$(readelf -dW "$file") segments=$(readelf -lW "$file") symbols=$(nm -D --undefined-only "$file")
  has "$segments" '^Elf file type is DYN' || wrong "not position-independent"
  ! has "$segments" 'INTERP' || has "$dynamic" '\(FLAGS_1\).* PIE' || wrong "no PIE"
  has "$segments" ' GNU_RELRO ' || wrong "relocations stay writable"
  case $file in
    */spank_sailor.so | */sailor_planner.so) ;;  # bound late on purpose (spank_plugin/CMakeLists.txt)
    *) has "$dynamic" '\((FLAGS|FLAGS_1)\).* (BIND_)?NOW' || wrong "functions are bound late" ;;
  esac
  has "$segments" ' GNU_STACK .* RW +0x' || wrong "the stack is executable"
  ! has "$segments" ' LOAD .* RWE ' || wrong "memory is writable and executable"
  ! has "$dynamic" '\((RPATH|RUNPATH)\)' || wrong "it has a search path"
  ! has "$dynamic" '\(TEXTREL\)' || wrong "code is relocated"
  [ $compiler = no ] || has "$symbols" ' __stack_chk_fail(@|$)' || wrong "no stack protector"
  [ $compiler = no ] || has "$symbols" ' __[a-z]+_chk(@|$)' || wrong "no checked copies"
  [ $branches = no ] || has "$(readelf -nW "$file" 2>/dev/null)" 'x86 feature: IBT, SHSTK' || wrong "no marked branch targets"
done < <(find "$1" -type f -print0)
[ $files -gt 0 ] || { echo "no ELF file in $1"; exit 1; }
[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
echo "$files files"
