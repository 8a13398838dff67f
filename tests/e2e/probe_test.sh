#!/bin/bash
# `sailor probe --on-nodes`: one job over two nodes of every GPU type; the profile has every pair of types; inside a job it uses that job's
# nodes; a second run has nothing to do.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mkdir -m 777 profiles
short=(--out profiles --max-bytes 65536 --messages-only)
links() { sailor probe --show profiles/network.json; }

run sailor probe --on-nodes "${short[@]}" --seconds 20
expect "it ends well" equal "$rc" 0
expect "and names its file" equal "$out" profiles/network.json
wait_idle
for pair in A100-40.*A100-40 V100-16.*V100-16 T4-16.*T4-16 A100-40.*V100-16 A100-40.*T4-16 V100-16.*T4-16; do
  expect "it measured $pair" grep -q "$pair" <(links)
done

run sailor probe "${short[@]}"
expect "outside a job it asks where" equal "$rc" 2
expect "on one line" one_error "$err"

rm profiles/network.json
run salloc --quiet -p fast -N2 --exclusive sailor probe "${short[@]}" --per-node 1 --seconds 5
expect "in a job of one component" equal "$rc" 0
expect "it takes that job's nodes" equal "$(grep -c 'V100\|T4' <(links))" 0
run salloc --quiet -p fast -N2 --exclusive sailor probe "${short[@]}" --per-node 1 --seconds 5
expect "a second run ends well" equal "$rc" 0
finish
