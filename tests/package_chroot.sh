#!/bin/bash
# The Debian packages on a machine that has only Debian: a root made by debootstrap, with Slurm from the distribution. Installed, `sailor doctor`
# is green and jobs are planned; upgraded from an earlier version, an edited site config stays; removed, plain jobs run as before. Needs
# root, debootstrap, the network and about 3 GB.
#
# usage: tests/package_chroot.sh [--suite SUITE] [--debs DIR] [--root DIR]
#     --suite SUITE   bookworm (default), trixie or forky
#     --debs DIR      packages that were built on this suite; default: made of the build
#     --root DIR      an existing root in DIR is reused and kept
set -euo pipefail
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${SAILOR_BUILD_DIR:-$source_root/build}
suite=bookworm debs='' root=''
while [ $# -gt 0 ]; do
  case $1 in
    --suite) suite=$2; shift ;;
    --debs) debs=$2; shift ;;
    --root) root=$2; shift ;;
    *) sed -n 's/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift
done
. "$source_root/tests/debian_root.sh"

# earlier_versions DIR TO: the packages in DIR as those of an earlier version, with another site config.
earlier_versions() {
  local deb tree
  tree=$(mktemp -d "$2/tree.XXXXXX")
  for deb in "$1"/*.deb; do
    rm -rf "$tree" && dpkg-deb -R "$deb" "$tree"
    sed -i -e 's/^Version: .*/Version: 0.0.1/' -e 's/sailor (= [^)]*)/sailor (= 0.0.1)/' "$tree/DEBIAN/control"
    if [ -e "$tree/etc/sailor/sailor.yaml" ]; then
      echo "# of an earlier version" >>"$tree/etc/sailor/sailor.yaml"
      (cd "$tree" && find usr etc -type f -exec md5sum {} +) >"$tree/DEBIAN/md5sums"
    fi
    dpkg-deb --root-owner-group -b "$tree" "$2" >/dev/null
  done
  rm -rf "$tree"
}

if [ "${SAILOR_INNER:-}" != yes ]; then
  made=
  if [ -z "$root" ]; then root=$(mktemp -d "${TMPDIR:-/tmp}/sailor-package-root.XXXXXX"); chmod 755 "$root"; made=$root; fi
  trap '[ -z "$made" ] || rm -rf --one-file-system -- "$made"' EXIT
  make_debian_root "$suite" "$root"
  rm -rf "$root"/{deb,earlier,src}
  if [ -n "$debs" ]; then mkdir "$root/deb" && cp "$debs"/*.deb "$root/deb"; else (cd "$build" && cpack -G DEB -B "$root/deb" >/dev/null); fi
  mkdir "$root/earlier" "$root/src"
  earlier_versions "$root/deb" "$root/earlier"
  cp -r "$source_root/tests" "$source_root/etc" "$root/src/"
  SAILOR_INNER=yes unshare --mount --pid --fork --kill-child "$0" --root "$root"
  exit
fi

mount --make-rprivate /
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
cat >"$root/inside.sh" <<'INSIDE'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
step() { echo "== $*"; }
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d # no daemon starts by itself
step Slurm
apt-get -qq update >/dev/null
apt-get -qq -y install --no-install-recommends slurmctld slurmd slurm-client munge procps >/dev/null 2>&1
step "packages of an earlier version"
apt-get -qq -y install --no-install-recommends /earlier/*.deb >/dev/null 2>&1
sailor --help >/dev/null
grep -qxF "include /etc/slurm/plugstack.conf.d/*.conf" /etc/slurm/plugstack.conf # Debian's own
id user >/dev/null 2>&1 || useradd -m user
[ -d /var/lib/sailor/profiles ]
cp /src/tests/e2e/fixtures/tiny_profile.json /src/etc/dev/network.json /var/lib/sailor/profiles/
sed -i 's/^#gres:/gres:/' /etc/sailor/sailor.yaml
echo 'gres: {a100: A100-40, v100: V100-16, t4: T4-16}' >/tmp/gres
sed -i -e '/^gres:/d' -e '/^profiles:/r /tmp/gres' /etc/sailor/sailor.yaml
step "an upgrade"
cp /etc/sailor/sailor.yaml /tmp/edited.yaml
apt-get -qq -y -o Dpkg::Options::=--force-confold install --no-install-recommends /deb/*.deb >/tmp/upgrade 2>&1 || { cat /tmp/upgrade; exit 1; }
[ "$(dpkg-query -f '${Version}' -W sailor)" != 0.0.1 ]
cmp /etc/sailor/sailor.yaml /tmp/edited.yaml
[ -f /etc/sailor/sailor.yaml.dpkg-dist ] # the new one, beside it
[ -f /var/lib/sailor/profiles/tiny_profile.json ]
# The throw-away cluster without a plugin of a build; it includes what the package put into /etc.
mkdir -p /empty/bin
/src/tests/cluster.sh up --user user --build /empty >/tmp/exports 2>/tmp/err || { cat /tmp/err; exit 1; }
. /tmp/exports
cp /etc/slurm/plugstack.conf "$SAILOR_CLUSTER_DIR/etc/plugstack.conf"
unset SAILOR_CONFIG # the package's
user() { runuser -u user -- "$@"; }
cd /tmp
cp /src/tests/e2e/fixtures/tiny.yaml . && chmod a+r tiny.yaml
step doctor
user sailor doctor --nodes >/tmp/doctor || { cat /tmp/doctor; echo "doctor is not green"; exit 1; }
step "a planned job"
user sbatch --sailor-objective=throughput --sailor-dry-run tiny.yaml 2>/dev/null | grep -q -- --nodelist=
user srun --sailor-objective=throughput --sailor-job=tiny.yaml -p small hostname | wc -l | grep -qx 4
step "a plain job"
[ "$(user srun -N2 -p fast echo plain | sort -u)" = plain ]
step "removed"
apt-get -qq -y remove sailor sailor-trainer >/dev/null 2>&1
[ ! -e /etc/slurm/plugstack.conf.d/sailor.conf ] && [ -f /etc/sailor/sailor.yaml ]
[ "$(user srun -N2 -p fast echo plain 2>/tmp/err | sort -u)" = plain ]
[ ! -s /tmp/err ] || { cat /tmp/err; echo "srun complains"; exit 1; }
user sbatch -W -o /dev/null --wrap true >/dev/null
! user sbatch --sailor-objective=throughput tiny.yaml >/dev/null 2>&1
/src/tests/cluster.sh down
apt-get -qq -y purge sailor >/dev/null 2>&1
[ ! -e /etc/sailor/sailor.yaml ]
echo "all passed"
INSIDE
chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  bash /inside.sh </dev/null
