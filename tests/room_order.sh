#!/usr/bin/env bash
# Says where a source tree breaks the order of its rooms (rooms.txt), a line each; exit 1 when it does.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: room_order.sh [--self-test] [ROOMS [TREE]]

Checks the C++ files of TREE's planner/, trainer/, profiler/ and spank_plugin/ (default: this repository) against ROOMS
(default: tests/rooms.txt). --self-test checks that violations of each kind are found in a tree made for it.
USAGE
}

# room_order ROOMS TREE
room_order() {
  local rooms
  rooms=$(realpath "$1")
  cd "$2"
  local places=()
  for place in planner trainer profiler spank_plugin; do [[ ! -d $place ]] || places+=("$place"); done
  grep -rnE --include='*.cpp' --include='*.h' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"|^' "${places[@]}" |
    awk -v rooms="$rooms" '
      function room_of(path) {
        while (sub(/\/[^\/]*$/, "", path)) if (path in rank) return path
        return ""
      }
      function complain(what) { print what; bad = 1 }
      BEGIN {
        while ((getline line < rooms) > 0) {
          sub(/#.*/, "", line)
          if (split(line, word, " ") == 0) continue
          if (word[2] == "->") permitted[word[1] " " word[3]] = 1
          else { rank[word[1]] = ++n; unused[word[1]] = 1 }
        }
      }
      {
        file = $0; sub(/:.*/, "", file)
        at = $0; sub(/^[^:]*:/, "", at); sub(/:.*/, "", at)
        text = $0; sub(/^[^:]*:[^:]*:/, "", text)
        room = room_of(file)
        if (room == "") { if (!(file in told)) complain(file ": in no room of " rooms); told[file] = 1; next }
        delete unused[room]
        if (text !~ /^[[:space:]]*#[[:space:]]*include[[:space:]]*"/) next
        split(text, part, "\""); header = part[2]
        if ((file " " header) in permitted) { used[file " " header] = 1; next }
        other = room_of(header)
        if (other == "") complain(file ":" at ": \"" header "\" is in no room")
        else if (rank[other] > rank[room]) complain(file ":" at ": " room " includes " header " of " other ", which is above it")
      }
      END {
        for (room in unused) complain(rooms ": " room " holds no source")
        for (pair in permitted) if (!(pair in used)) complain(rooms ": " pair " is permitted, but nobody includes it")
        exit bad
      }'
}

self_test() {
  local tree found
  tree=$(mktemp -d)
  trap 'rm -rf "$tree"' RETURN
  mkdir -p "$tree"/planner/{low,high/inner}
  printf 'planner/low\nplanner/high # the upper one\nplanner/high/inner\n' > "$tree/rooms"
  echo '#include <vector>' > "$tree/planner/low/a.h"
  echo '#include "planner/low/a.h"' > "$tree/planner/high/b.h"
  printf '#include "planner/low/a.h"\n#include "planner/high/b.h"\n' > "$tree/planner/high/inner/c.cpp"
  expect() {  # expect STATUS PATTERN: what the check says of the tree as it is now
    local status=0
    found=$(room_order "$tree/rooms" "$tree" 2>&1) || status=$?
    [[ $status == "$1" && $found =~ $2 ]] || { echo "room_order.sh --self-test: expected $1 and \"$2\", got $status: $found"; return 1; }
  }
  (
    expect 0 '^$'
    printf '\n#  include "planner/high/inner/c.h"\n' >> "$tree/planner/low/a.h"
    expect 1 'planner/low/a.h:3: planner/low includes planner/high/inner/c.h of planner/high/inner'
    echo 'planner/low/a.h -> planner/high/inner/c.h' >> "$tree/rooms"
    expect 0 '^$'
    echo '#include <vector>' > "$tree/planner/low/a.h"
    expect 1 'is permitted, but nobody includes it'
    sed -i '$d' "$tree/rooms"
    echo '#include "planner/high/inner/c.h"' >> "$tree/planner/high/b.h"
    expect 1 'planner/high/b.h:2: planner/high includes'
    echo '#include "planner/low/a.h"' > "$tree/planner/high/b.h"
    mkdir "$tree/planner/new"
    touch "$tree/planner/new/empty.h"
    echo 'int x;' > "$tree/planner/new/d.cpp"
    expect 1 'planner/new/d.cpp: in no room'
    rm -r "$tree/planner/new"
    echo '#include "tests/e.h"' > "$tree/planner/low/a.h"
    expect 1 '"tests/e.h" is in no room'
    echo 'int y;' > "$tree/planner/low/a.h"
    echo 'planner/gone' >> "$tree/rooms"
    expect 1 'planner/gone holds no source'
  )
}

case ${1:-} in
  -h | --help) usage; exit 0 ;;
  --self-test) self_test; exit ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
room_order "${1:-$here/rooms.txt}" "${2:-$here/..}"
