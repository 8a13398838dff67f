# Debian roots made by debootstrap (sourced, not run).

# make_debian_root SUITE DIR [DEBOOTSTRAP OPTIONS]: unless there is a root in DIR already. Packages come from SAILOR_DEBIAN_MIRROR,
# else from where this machine gets its own; those of Ubuntu (noble) from SAILOR_UBUNTU_MIRROR. Fails with the last lines of
# debootstrap's log.
make_debian_root() {
  local suite=$1 root=$2 mirror=${SAILOR_DEBIAN_MIRROR:-} script=
  shift 2
  [[ ! -e $root/usr/bin/apt-get ]] || return 0
  if ((EUID != 0)); then
    echo "sailor: debootstrap and chroot need root" >&2
    return 1
  fi
  if ! command -v debootstrap > /dev/null; then
    echo "sailor: debootstrap is missing: apt-get install debootstrap" >&2
    return 1
  fi
  [[ -n $mirror ]] || mirror=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' 2> /dev/null |
    awk '$1 == "Debian" {print $2; exit}')
  # An older debootstrap does not know the names of later releases, which are all made in the same way.
  [[ -e /usr/share/debootstrap/scripts/$suite ]] || script=/usr/share/debootstrap/scripts/sid
  if [[ $suite == noble ]]; then
    mirror=${SAILOR_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
    script=/usr/share/debootstrap/scripts/gutsy
    set -- --components=main,universe "$@"
  fi
  local part=$root.part  # so that a root is complete or not there
  rm -rf --one-file-system -- "$part"
  mkdir -p "$part"
  chmod 755 "$part"  # it becomes /, which everybody enters
  local http_proxy=
  eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
  export http_proxy
  if ! debootstrap --variant=minbase "$@" "$suite" "$part" "${mirror:-http://deb.debian.org/debian}" ${script:+"$script"} \
    > "$root.log" 2>&1; then
    tail -n 5 "$root.log" >&2
    echo "sailor: debootstrap $suite failed; the whole log is in $root.log" >&2
    return 1
  fi
  rm -f "$root.log"
  cp /etc/resolv.conf "$part/etc/resolv.conf"
  apt-config dump --format '%f "%v";%n' | grep -E '^Acquire::(http|https|Check-Valid-Until|Check-Date)\b' \
    > "$part/etc/apt/apt.conf.d/90host" || true
  [[ ! -e $root ]] || rmdir "$root"
  mv "$part" "$root"
}
