#!/usr/bin/env bash
# Loads the configurations that `sailor plan --format` writes with the frameworks' own loaders, and compares them with the plans. Exit 77 =
# skipped, with the reason.
set -euo pipefail

usage() {
  cat <<'USAGE'
usage: tests/frameworks/run.sh [--install] BIN_DIR

The frameworks are in a virtual environment: $SAILOR_FRAMEWORKS_VENV, default $XDG_CACHE_HOME/sailor/frameworks. --install makes it (1.4 GB;
PyTorch is that of tests/libtorch_2_11.sh). Frameworks that are not in it are skipped.
USAGE
}

install=false
case ${1:-} in
  -h | --help) usage; exit 0 ;;
  --install) install=true; shift ;;
esac
(($# == 1)) || { usage >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$(cd "$1" && pwd)
venv=${SAILOR_FRAMEWORKS_VENV:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sailor/frameworks}
skip() { echo "skipped: $*"; exit 77; }

if $install; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q wheel setuptools -r "$here/requirements.txt"
  # Only their loaders are used: not all that they depend on.
  DS_BUILD_OPS=0 "$venv/bin/pip" install -q --no-deps --no-build-isolation -r "$here/frameworks.txt"
fi
[[ -x $venv/bin/python ]] || skip "no frameworks in $venv (tests/frameworks/run.sh --install BIN_DIR)"
torch=$("$here/../libtorch_2_11.sh" --python) || skip "PyTorch: $torch"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export SAILOR_CONFIG=$work/site.yaml PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$torch CUDA_VISIBLE_DEVICES="" DS_ACCELERATOR=cpu
echo 'sailor_site: 1' > site.yaml
settings='precision: bf16, steps: 10000, clip_grad_norm: 1, optimizer: {name: adamw, lr: 3.0e-4}, schedule: {name: cosine, warmup_steps: 100}'
llama='family: llama, heads: 32, kv_heads: 8, sequence: 4096, vocabulary: 128256'
printf 'model: {%s, layers: 32, hidden: 4096, feed_forward: 14336}\ntraining: {global_batch: 256, %s}\n' "$llama" "$settings" > large.yaml
printf 'model: {%s, layers: 16, hidden: 1024}\ntraining: {global_batch: 256, %s}\n' "$llama" "$settings" > small.yaml
printf 'model: {%s, layers: 16, hidden: 1024}\ntraining: {global_batch: 2048, %s}\n' "$llama" "$settings" > batches.yaml
printf 'model: {%s, layers: 32, hidden: 4096, feed_forward: 14336}\ntraining: {global_batch: 16, %s}\n' "${llama/4096/65536}" "$settings" > long.yaml
# Links between nodes that are slow enough for groups of ranks with a copy of the states each.
mkdir slow
links='{"from": {}, "to": {}, "scope": "intra_node", "latency_s": 1e-5, "bytes_per_s": 2e11, "node_bytes_per_s": 2e11},
  {"from": {}, "to": {}, "scope": "inter_node", "latency_s": 1e-5, "bytes_per_s": 5e7, "node_bytes_per_s": 5e7}'
printf '{"sailor_network_profile": 1, "measured": "by hand", "links": [%s]}\n' "$links" > slow/network.json
printf 'sailor_site: 1\nprofiles: [%s]\n' "$PWD/slow" > slow.yaml

# check LARGE GPUS: plans for the job LARGE, and for smaller ones where the model is not split, on nodes of 4 GPUs.
check() {
  printf 'sailor_snapshot: 1\nnodes: [{name: a, count: %d, zone: here, gpu_type: A100-40, gpus: 4}]\n' $(($2 / 4)) > cluster.yaml
  emit "$1" torchtitan torchtitan.toml
  emit small.yaml deepspeed deepspeed.json
  emit small.yaml deepspeed zero3.json --trainer deepspeed-zero3
  emit small.yaml accelerate accelerate.yaml
  emit "${1/long/large}" accelerate fsdp.yaml --trainer fsdp
  emit batches.yaml accelerate hsdp.yaml --trainer hsdp --config slow.yaml
  emit "$1" nemo nemo.yaml
  emit "$1" mesh mesh.json --trainer megatron-core
  "$venv/bin/python" "$here/check.py" "$work" 2> check.log || {
    local code=$?
    [[ $code == 77 ]] || cat check.log
    exit "$code"
  }
}
# emit JOB FORMAT FILE [OPTION...]: FILE, and its plan.
emit() {
  "$bin/sailor" plan "$1" --cluster cluster.yaml --format "$2" -o "${3%%.*}.plan.json" --effort 2 "${@:4}" > "$3" 2> emit.log || { cat emit.log; exit 1; }
}
# Plans of different degrees, for the order of ranks.
RANDOM=31
types=(A100-40 V100-32 RTX-3090 H100-80) hidden=(2048 4096 5120)
for ((i = 1; i <= 20; i++)); do
  printf 'model: {%s, layers: %d, hidden: %d, heads: 32, kv_heads: 8}\ntraining: {global_batch: %d, precision: fp16, steps: 10}\n' \
    'family: llama, sequence: 2048, vocabulary: 32000' $((8 + 8 * (RANDOM % 5))) "${hidden[RANDOM % 3]}" $((64 << RANDOM % 3)) > job.yaml
  printf 'sailor_snapshot: 1\nnodes: [{name: a, count: %d, zone: here, gpu_type: %s, gpus: %d}]\n' $((1 << RANDOM % 4)) "${types[RANDOM % 4]}" \
    $((4 << RANDOM % 2)) > cluster.yaml
  kind=megatron-core
  ((i % 4 > 0)) || kind=torchtitan
  "$bin/sailor" plan job.yaml --cluster cluster.yaml --format mesh --trainer $kind > "ranks-$i.$kind.json" 2> emit.log || rm "ranks-$i.$kind.json"   # no plan fits
done
check long.yaml 32
check large.yaml 16
check small.yaml 8
