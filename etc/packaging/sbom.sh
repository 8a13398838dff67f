#!/usr/bin/env bash
# Writes the software bill of materials of a package, from what was linked. See --help.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: sbom.sh BUILD NAME VERSION FILE...

Prints an SPDX 2.3 document (JSON) of the package NAME, whose programs and libraries are the FILEs of the Ninja build in BUILD. It lists

  - the shared libraries that they load at start (DYNAMIC_LINK);
  - static libraries and headers of other projects that were compiled in (STATIC_LINK), as far as they do not belong to such a shared library.
    The headers of the kernel are left out: they are its interface.

by the packages (dpkg or rpm) that own them, with version, supplier, license and package URL; what no package owns by its directory. NINJA names
ninja's program. Times are SOURCE_DATE_EPOCH, if set; the same build gives the same document.
USAGE
}
case ${1:-} in "" | -*) usage >&2; exit 2 ;; esac
build=$(cd "$1" && pwd) name=$2 version=$3
shift 3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C
cd "$build"

# Files of other projects: shared libraries, static libraries, headers.
files=("${@#"$PWD"/}")
: > "$work/found" # "libz.so.1 /lib/x86_64-linux-gnu/libz.so.1"
for file in "${files[@]}"; do
  readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u > "$work/needed"
  [[ -n $(join -v 1 "$work/needed" "$work/found") ]] || continue
  ldd "$file" | awk '{path = $2 == "=>" ? $3 : $1; n = split($1, part, "/"); if (path ~ /^\//) print part[n], path}' |
    sort -u | join "$work/needed" - | sort -u - "$work/found" > "$work/more"
  mv "$work/more" "$work/found"
done
cut -d' ' -f2 "$work/found" | xargs -r realpath | sort -u > "$work/shared"
"${NINJA:-ninja}" -t inputs "${files[@]}" | sort -u > "$work/inputs"
grep -E '^/.*\.a$' "$work/inputs" > "$work/compiled" || true
"${NINJA:-ninja}" -t deps | awk -v inputs="$work/inputs" 'BEGIN {while ((getline line < inputs) > 0) wanted[line] = 1}
  /^[^ ]/ {sub(/: #deps .*/, ""); use = $0 in wanted} /^ / && use {sub(/^ +/, ""); print}' |
  sort -u | xargs -r realpath -q | grep -vE -e "^($root|$PWD)/" -e '/include/([^/]*-linux-[^/]*/)?(asm|asm-generic|linux)/' -e '^(/usr)?/lib/linux/uapi/' | sort -u >> "$work/compiled"

# owner FILE...: "PACKAGE FILE" of the package that owns it.
if command -v dpkg-query > /dev/null && dpkg-query -S /usr/bin/dpkg > /dev/null 2>&1; then
  kind=deb
  owners() { # a directory that is a link to another (/lib) has its files in either
    sed -E 's#^(/usr)?(/.*)#\2\n/usr\2#' "$1" | xargs -r dpkg-query -S 2> /dev/null | grep -vE '^diversion|, ' | sed -E 's/^([^ ]+): /\1 /' || true
  }
  describe() { # PACKAGE: source/version, name, version, purl, supplier, home page
    dpkg-query -W -f '${source:Package}/${source:Version}\t${Package}\t${Version}\t${Architecture}\t${Maintainer}\t${Homepage}\n' "$1" |
      awk -F '\t' -v OFS='\t' -v id="$(. /etc/os-release && echo "$ID")" -v release="$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" '{
        supplier = $5; sub(/ *</, " (", supplier); sub(/>$/, ")", supplier); version = $3; gsub(/\+/, "%2B", version); gsub(/:/, "%3A", version)
        package = $2; gsub(/\+/, "%2B", package)
        print $1, $2, $3, "pkg:deb/" id "/" package "@" version "?arch=" $4 (release == "" ? "" : "&distro=" release), "Organization: " supplier, $6}'
  }
  license_of() { # source/version
    local pattern license
    while read -r pattern license; do
      # shellcheck disable=SC2254 # a pattern
      case $pattern in '#'*) ;; *) case $1 in $pattern) echo "$license"; return ;; esac ;; esac
    done < "$here/licenses"
    echo NOASSERTION
  }
else
  kind=rpm
  owners() { while read -r file; do rpm -qf --qf "%{NAME} $file\n" "$file" 2> /dev/null | grep -v 'not owned' || true; done < "$1"; }
  describe() {
    rpm -q --qf '%{SOURCERPM}\t%{NAME}\t%{VERSION}-%{RELEASE}\tpkg:rpm/'"$(. /etc/os-release && echo "$ID")"'/%{NAME}@%{VERSION}-%{RELEASE}?arch=%{ARCH}\tOrganization: %{VENDOR}\t%{URL}\n' "$1"
  }
  license_of() { rpm -q --qf '%{LICENSE}\n' "$package"; }
fi

# One line for each: relation, source, name, version, purl, supplier, home page.
built_with() { sed -n "s/.*{\"$1\", R\"text(\(.*\))text\"}.*/\1/p" "$PWD/planner/generated/planner/cli/build_info.h"; }
components() { # RELATION LIST
  owners "$2" > "$work/owned"
  cut -d' ' -f1 "$work/owned" | sort -u | while read -r package; do describe "$package" | sed "s/^/$1\t/"; done
  # Those that no package owns, by the directory above lib/ or include/.
  cut -d' ' -f2- "$work/owned" | sed -E 's#^/usr(/.*)#\1#' | sort -u > "$work/known"
  sed -E 's#^/usr(/.*)#\1#' "$2" | sort -u | comm -23 - "$work/known" |
    sed -E 's#/(targets/[^/]+/)?(include|lib|lib64)/.*##; s#.*/##' | sort -u | while read -r directory; do
    case $directory in cuda*) known=$(built_with cuda) ;; torch) known=$(built_with libtorch) ;; *) known= ;; esac
    printf '%s\t-\t%s\t%s\t-\tNOASSERTION\t-\n' "$1" "$directory" "${known:-NOASSERTION}"
  done
}
components DYNAMIC_LINK "$work/shared" > "$work/components"
cut -f2 "$work/components" | cut -d/ -f1 | sort -u > "$work/linked"
components STATIC_LINK "$work/compiled" | awk -F '\t' -v linked="$work/linked" 'BEGIN {while ((getline line < linked) > 0) seen[line] = 1}
  {split($2, source, "/")} source[1] == "-" || !(source[1] in seen)' >> "$work/components"

json() { sed -e 's/[\\"]/\\&/g' <<< "$1"; }
id_of() { sed 's/[^A-Za-z0-9.-]/-/g' <<< "SPDXRef-Package-$1"; }
{
  cat << JSON
  "name": "$name-$version",
  "packages": [
    {"SPDXID": "$(id_of "$name")", "name": "$name", "versionInfo": "$version", "supplier": "Organization: Sailor for Slurm",
     "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0",
     "copyrightText": "NOASSERTION", "primaryPackagePurpose": "APPLICATION",
     "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:$kind/$name@$version"}]}
JSON
  while IFS=$'\t' read -r relation source package package_version purl supplier home; do
    license=NOASSERTION
    [[ $source == - ]] || license=$(license_of "$source")
    printf '    ,{"SPDXID": "%s", "name": "%s", "versionInfo": "%s", "supplier": "%s",\n     "downloadLocation": "NOASSERTION", "filesAnalyzed": false' \
      "$(id_of "$package")" "$package" "$package_version" "$(json "$supplier")"
    printf ', "licenseConcluded": "NOASSERTION", "licenseDeclared": "%s", "copyrightText": "NOASSERTION"' "$(json "$license")"
    [[ $home != http* ]] || printf ',\n     "homepage": "%s"' "$(json "$home")"
    [[ $source == - ]] || printf ',\n     "sourceInfo": "built from %s"' "$source"
    [[ $purl == - ]] || printf ',\n     "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "%s"}]' "$purl"
    printf '}\n'
  done < "$work/components"
  printf '  ],\n  "relationships": [\n    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "%s"}\n' "$(id_of "$name")"
  while IFS=$'\t' read -r relation source package _; do
    comment=
    [[ $relation == DYNAMIC_LINK ]] || comment=', "comment": "its headers, or parts of a static library, were compiled in"'
    printf '    ,{"spdxElementId": "%s", "relationshipType": "%s", "relatedSpdxElement": "%s"%s}\n' "$(id_of "$name")" "$relation" "$(id_of "$package")" "$comment"
  done < "$work/components"
  printf '  ]\n}\n'
} > "$work/body"
cat << JSON
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "documentNamespace": "https://spdx.org/spdxdocs/$name-$version-$(sha256sum "$work/body" | cut -c1-32)",
  "creationInfo": {"created": "$(date -u ${SOURCE_DATE_EPOCH:+-d "@$SOURCE_DATE_EPOCH"} +%Y-%m-%dT%H:%M:%SZ)", "creators": ["Tool: sailor-sbom-$version"]},
JSON
cat "$work/body"
