"""Checks the bill of materials of a Debian package: usage: sbom_check.py FILE.spdx.json NAME DEPENDS

References resolve, components have version, license and package URL (directories that no package owns have none), and the libraries that are
linked dynamically are those of the package's Depends, which dpkg-shlibdeps found in its own way."""
import json
import re
import sys

path, name, depends = sys.argv[1:]
document = json.load(open(path))
packages = {package["SPDXID"]: package for package in document["packages"]}
wrong = []
if document["spdxVersion"] != "SPDX-2.3" or len(packages) != len(document["packages"]):
    wrong.append("is no SPDX 2.3 document, or lists a package twice")
linked = set()
compiled = set()
for relation in document["relationships"]:
    if relation["relatedSpdxElement"] not in packages:
        wrong.append(f"{relation['relatedSpdxElement']} is not listed")
        continue
    other = packages[relation["relatedSpdxElement"]]["name"]
    if relation["relationshipType"] == "DYNAMIC_LINK":
        linked.add(other)
    elif relation["relationshipType"] == "STATIC_LINK":
        compiled.add(other)
    elif other != name:
        wrong.append(f"describes {other}")
for package in document["packages"]:
    if "externalRefs" in package:
        for key in ("versionInfo", "supplier", "licenseDeclared"):
            if package[key] in ("", "NOASSERTION"):
                wrong.append(f"{package['name']} has no {key} (licenses: etc/packaging/licenses)")
# Alternatives, versions, and what is named without being linked.
expected = {re.sub(r" .*|:.*", "", part.strip()) for part in depends.split(",")} - {"sailor", "openmpi-bin"}
if linked != expected:
    wrong.append(f"links {sorted(linked)}, Depends has {sorted(expected)}")
if not {"nlohmann-json3-dev", "libcli11-dev"} <= compiled:
    wrong.append(f"headers of {sorted(compiled)} only")
for line in wrong:
    print(f"{path}: {line}")
sys.exit(1 if wrong else 0)
