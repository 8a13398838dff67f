#!/usr/bin/env bash
# Installs the Debian packages for building (and testing). Does nothing when all are installed.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: install-packages.sh [--test] [--fuzz]

Installs the packages that etc/dev/packages lists under `build`, and with --test or --fuzz also those under `test` or `fuzz`.
Needs root only when packages are missing. The names are those of Debian 12, 13 and 14 (bookworm, trixie, forky) and of Ubuntu 24.04
(noble), which has no libtorch: set TORCH_PREFIX to the `torch` folder of an installed PyTorch there. Elsewhere a package may be missing
or have another name.
USAGE
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
sections=build
for argument in "$@"; do
  case $argument in
    --test | --fuzz) sections+="|${argument#--}" ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
done

release=$(. /etc/os-release && echo "${VERSION_CODENAME:-$PRETTY_NAME}")
missing=()
while read -r package; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done < <(awk -v sections="^($sections)\$" -v release="$release" \
  '$1 ~ sections && ($3 == "" || $3 == "minimal" || $3 == release || ($3 ~ /^not-/ && $3 != "not-" release)) {print $2}' "$here/packages")

if ((${#missing[@]} == 0)); then
  echo "packages: all installed"
  exit 0
fi
if ((EUID != 0)); then
  echo "sailor: these packages are missing; run as root: apt-get install ${missing[*]}" >&2
  exit 1
fi
case $release in
  bookworm | trixie | forky | noble) ;;
  *) echo "packages: tried with Debian 12, 13 and 14 and Ubuntu 24.04 only; this is $release, whose packages may have other names" ;;
esac
echo "packages: installing ${#missing[@]}: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# Keep packages from starting their daemons, which are not those of a throw-away cluster.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
  trap 'rm -f "$policy"' EXIT
fi
log=$(mktemp)
if ! { apt-get -q update && apt-get -q -y install --no-install-recommends "${missing[@]}"; } > "$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "sailor: apt-get failed; the whole log is in $log" >&2
  exit 1
fi
rm -f "$log"
