#!/bin/bash
# `sailor doctor` on the throw-away cluster: no findings when it is intact; every fault is found, with a remedy.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cp "$SAILOR_CLUSTER_DIR/etc/plugstack.conf" plugstack.saved
cp "$SAILOR_CLUSTER_DIR/etc/plugstack.conf.d/sailor.conf" sailor.saved
restore() {
  cp plugstack.saved "$SAILOR_CLUSTER_DIR/etc/plugstack.conf"
  cp sailor.saved "$SAILOR_CLUSTER_DIR/etc/plugstack.conf.d/sailor.conf"
}
cat >"$SAILOR_CLUSTER_DIR/profiles/doctor_network.json" <<'JSON'
{"sailor_network_profile": 1, "links": [{"scope": "any", "latency_s": 1e-5, "bytes_per_s": 1e9}]}
JSON
chmod a+r "$SAILOR_CLUSTER_DIR/profiles/doctor_network.json"

run sailor doctor --nodes
expect "a sound cluster: exit 0" equal "$rc" 0
expect "and no problem" test "$(grep -c '^problem' <<<"$out")" = 0
for word in "ok       slurm" "ok       plugin" "ok       sbatch" "ok       programs" "ok       gres       gpu:a100 of 2 nodes is A100-40" \
  "ok       node       a1 (A100-40)" "ok       node       t1 (T4-16)"; do
  expect "it says: $word" contains "$out" "$word"
done

# A login node: planner and plugin, but no trainer.
mkdir -p login && cp "$(command -v sailor)" "$(command -v sailor-doctor)" login/ && chmod -R a+rX login
run login/sailor doctor
expect "a login node without the trainer: exit 0" equal "$rc $(grep -c '^problem' <<<"$out")" "0 0"
expect "with a note" contains "$out" "note     programs   the trainer is not installed here"
run login/sailor-doctor --here
expect "a compute node without it: exit 1" equal "$rc" 1

: >"$SAILOR_CLUSTER_DIR/etc/plugstack.conf"
run sailor doctor
expect "no line for the plugin: exit 1" equal "$rc" 1
expect "which it says" contains "$out" "has no line for spank_sailor.so"
expect "with the consequence" contains "$out" "does not know --sailor-objective"
restore

sed -i 's/^optional/required/' "$SAILOR_CLUSTER_DIR/etc/plugstack.conf.d/sailor.conf"
run sailor doctor
expect "required: only a warning" equal "$rc $(grep -c 'is `required`' <<<"$out")" "0 1"
restore

sed "s/^gres:.*/gres: {v100: V100-16, t4: T4-16}/; s|catalog.yaml|$SAILOR_CLUSTER_DIR/etc/catalog.yaml|; s|\.\./profiles|$SAILOR_CLUSTER_DIR/profiles|" \
  "$SAILOR_CLUSTER_DIR/etc/sailor.yaml" >site.yaml
run sailor doctor --config site.yaml
expect "a GRES type that nobody knows" equal "$rc" 1
expect "is named" contains "$out" "gpu:a100 of 2 nodes is not a GPU type"

run sailor doctor --config absent.yaml
expect "no site config: exit 1" equal "$rc" 1
run env SLURM_CONF=/nonexistent/slurm.conf timeout 20 sailor doctor
expect "no Slurm: a failure that ends" test "$rc" != 0
run sailor doctor --sideways
expect "bad usage" equal "$rc" 2
rm -f "$SAILOR_CLUSTER_DIR/profiles/doctor_network.json"
finish
