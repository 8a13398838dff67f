#!/usr/bin/env bash
# Collects the libraries that -DSAILOR_MINIMAL=ON needs in addition to PyTorch, CUDA and NCCL, for a machine without packages. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: dependencies.sh OUT

Copies headers, CMake files and shared libraries of the installed packages that etc/dev/packages marks `minimal`, and the libraries
that they need, to OUT (8 MB). Then, on a machine of the same architecture with a C library at least as new as this one's:
  cmake -S sailor -B build -DSAILOR_MINIMAL=ON -DCMAKE_PREFIX_PATH=OUT/usr -DCMAKE_LIBRARY_ARCHITECTURE=$(gcc -print-multiarch) \
    -DTORCH_PREFIX=$(python3 -c 'import torch; print(torch.__path__[0])')
USAGE
}
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  "" | -*) usage >&2; exit 2 ;;
esac
out=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

mkdir -p "$out"
awk '$3 == "minimal" {print $2}' "$here/packages" | while read -r package; do
  dpkg -L "$package" > /dev/null 2>&1 || { echo "sailor: $package is not installed: etc/dev/install-packages.sh" >&2; exit 1; }
  dpkg -L "$package" | grep -E '^/usr/(include|lib|share/cmake)|^/lib' | while read -r file; do
    if [[ -d $file || $file == *.a ]]; then continue; fi
    mkdir -p "$out$(dirname "$file")"
    cp -P "$file" "$out$file"
  done
done

# A library's link points to a package that is not listed; and libraries need others.
libraries=$out/usr/lib/$(gcc -print-multiarch)
for link in "$libraries"/*.so; do
  real=$(readlink -f "/usr/lib/$(gcc -print-multiarch)/${link##*/}")
  cp -L "$real" "$libraries/${real##*/}"
  ln -sf "${real##*/}" "$link"
  ldd "$real" | awk '/=> \// {print $1, $3}'
  name=$(objdump -p "$real" | awk '$1 == "SONAME" {print $2}')
  [[ -e $libraries/$name ]] || ln -s "${real##*/}" "$libraries/$name"
done | sort -u | while read -r name path; do
  case $name in
    libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | ld-linux* | libstdc++.so* | libgcc_s.so*) continue ;;
  esac
  [[ -e $libraries/$name ]] || cp -L "$path" "$libraries/$name"
done
echo "$out: $(du -sh "$out" | cut -f1)"
