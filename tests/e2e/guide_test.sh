#!/bin/bash
# Runs every command of README and the guides once, unchanged, as an ordinary user on the throw-away cluster; all must succeed. Only paths
# and ids of the guides' imaginary site are replaced (below). A command that cannot run here names the test that runs it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"
root=$(cd "$e2e/../.." && pwd)
golden=$root/tests/golden/fixtures

# What a line of code in the guides begins with if it is a command.
commands_of() {
  sed -nE 's/^    (\$ )?((sailor|sbatch|salloc|srun|mpirun|torchrun|cmake|\(cd|etc|tests|bible)[ /].*)$/\2/p' "$@" |
    grep -vE '^(etc|tests)/? +[a-z]' | sed -E 's/  +# .*$//; s/ +$//' | awk '!seen[$0]++'
}
# Commands that another test runs: "COMMAND | FILE | text in that file".
elsewhere() {
  cat <<'TABLE'
etc/quickstart.sh | tests/roots.sh | etc/quickstart.sh
tests/run.sh | tests/roots.sh | tests/run.sh
tests/busy.sh --seed 1 --minutes 30 --load 0.95 --out DIR | tests/run.sh | /tests/busy.sh" --seed
etc/dev/install-packages.sh | tests/run.sh | etc/dev/install-packages.sh
cmake -S . -B build -G Ninja | etc/quickstart.sh | cmake -S "$root" -B "$build" -G Ninja
cmake -S . -B build -G Ninja && cmake --build build --target sailor | etc/quickstart.sh | cmake --build "$build" --target product
cmake --build build --target product | etc/quickstart.sh | cmake --build "$build" --target product
cmake --install build | tests/package_test.sh | cmake --install
(cd build && cpack -G DEB) | tests/package_chroot.sh | cpack
sailor pareto job.yaml --points 20 --svg front.svg | tests/golden/transcripts/pareto.txt | --svg front.svg
sailor pareto job.yaml --json | tests/golden/transcripts/pareto.txt | --points 3 --json
sailor probe --ranks 2 --gpu-type cpu | tests/probe/interrupted_test.sh | "$bin/sailor-probe" --ranks 2
sailor profile job.yaml --trace trace.json.gz --gpu-type A100-80 --microbatches 2 --tp 1 | tests/golden/transcripts/trainer/profile-trace.txt | sailor profile script.yaml --trace
sailor profile job.yaml --trace run_nvtx_gpu_proj_trace.csv --gpu-type A100-80 --microbatches 2 --tp 1 | tests/golden/transcripts/trainer/profile-trace.txt | sailor profile script.yaml --trace traces/nsys-step.csv
sailor profile --on-nodes job.yaml | tests/e2e/profile_test.sh | run sailor profile --on-nodes
sailor probe --on-nodes | tests/e2e/probe_test.sh | run sailor probe --on-nodes
mpirun -np 8 --host a1:4,b1:4 sailor probe --cluster nodes.yaml --seconds 300 | tests/probe/namespaces_test.sh | mpirun
sailor probe --ranks 8 --gpu-type H100-80 --transport nccl | tests/unit/nccl/probe_on_gpus_test.cpp | probe(factory, ranks, request_
sailor tokenize part-*.parquet -o data --model tokenizer.json --column content | tests/parquet_check.py | '--column', 'body'
sailor generate /scratch/opt-350m --tokenizer data/tokenizer.model --prompt "The cluster" --samples 3 | tests/golden/transcripts/trainer/generate.txt | sailor generate fox
sailor generate Llama-3.2-1B-Instruct --chat --prompts questions.jsonl --temperature 0 --json > answers.jsonl | tests/golden/transcripts/trainer/generate.txt | --prompts prompts.jsonl
salloc -p fast -N2 --exclusive --gres=gpu:4 sailor probe --per-node 4 | tests/e2e/probe_test.sh | run salloc --quiet -p fast -N2 --exclusive sailor probe
TABLE
}
# Commands of other tools.
foreign() { [[ $1 == "bible "* ]]; }

# The command with this site's paths and ids.
here() { sed -E "s#/scratch/#$work/site/scratch/#g; s#(sailor-|\b)1234\b#\1$trained#g" <<<"$1"; }
# What is typed into an interactive command.
typed() { case $1 in "salloc --sailor-objective=throughput --sailor-job=job.yaml") echo "sailor run job.yaml" ;; esac; }

# --- files of the imaginary site, in $work/site; every guide gets a copy
mkdir -m 777 site && cd site
setup_training 8
sed -i '2a #SBATCH --sailor-objective=throughput' job.yaml
chmod a+rx job.yaml
cp "$golden/box.xml" .
cp "$golden/traces/spot.csv" trace.csv
mkdir -p share/sailor runs bin scratch
for file in "$golden"/runs/*.jsonl; do sed 's/"platform": "[a-z]*"/"platform": "dgx-a100"/; s/"framework": "[a-z]*"/"framework": "megatron-core"/; s/swift-80/A100-80/g; s/small-16/V100-16/g' "$file" >"runs/${file##*/}"; done
cp -r "$root/etc/calibration" share/sailor/
cp share/sailor/calibration/sailor.json share/sailor/calibration/NAME.json
# Enough words for a vocabulary of 8000.
awk 'BEGIN { srand(3); for (i = 0; i < 30000; i++) { w = ""; for (k = 2 + int(rand() * 8); k > 0; k--) w = w sprintf("%c", 97 + int(26 * rand() * rand())); word[i] = w }
  for (i = 0; i < 150000; i++) printf "%s%s", word[int(30000 * rand())], i % 12 == 11 ? ".\n" : " " }' >book.txt
for name in book1 book2 more kjv; do cp book.txt $name.txt; done
mkdir Llama-3.1-8B Llama-3.1-8B-Instruct
python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["tokenizer"], sys.stdout)' "$root/tests/unit/tokenize/golden/llama3.json" >tokenizer.json
cp tokenizer.json Llama-3.1-8B/
cp tokenizer.json Llama-3.1-8B-Instruct/
echo '{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>{{ m.content }}<|eot_id|>{% endfor %}' >Llama-3.1-8B-Instruct/chat_template.jinja
sed -n '1,200s/.*/{"content": "&"}/p' book.txt >part-1.jsonl
sed -n '1,200s/.*/{"prompt": "&", "completion": " &"}/p' book.txt >examples.jsonl
sed -n '1,200s/.*/{"messages": [{"role": "user", "content": "&"}, {"role": "assistant", "content": "&"}]}/p' book.txt >chats.jsonl
mkdir c4 && cp -r "$golden/mds/columns" c4/train
sailor cluster --format yaml >cluster.yaml
cp cluster.yaml now.yaml
cp cluster.yaml nodes.yaml
printf '#!/bin/bash\nexec sailor run job.yaml\n' >script.sh
printf 'import os\nassert os.environ["RANK"] and os.environ["MASTER_ADDR"]\n' >train.py
ln -s "$(user bash -c "command -v python3")" bin/python
printf '#!/bin/sh\n[ "$2" = pretrain_gpt.py ] && [ "$3" = --tensor-model-parallel-size ]\n' >bin/torchrun
chmod a+x script.sh bin/torchrun
chmod -R a+rwX .
# A finished run with checkpoints and events, as job 1234 of the guides.
sed 's/^#SBATCH --job-name.*/#SBATCH --job-name=elastic --time=00:10:00/; s/^  steps: .*/&\n  ema: {decay: 0.9}/; $a checkpoint: {directory: checkpoints, every_steps: 2}\nelastic: {enabled: true}' job.yaml >elastic.yaml
chmod a+rx elastic.yaml
run sbatch --wait elastic.yaml
expect "a job of the guides' kind trains" equal "$rc" 0
trained=$(job_submitted)
[ -d "sailor-$trained" ] || { cat slurm-*.out; exit 1; }
wait_idle
cp -r checkpoints scratch/opt-350m
# Adapters of the model that it trained.
user sailor checkpoint export checkpoints -o lora-base >/dev/null
sed 's/^model: .*/model: {from: lora-base, sequence: 32}/; s/^  steps: .*/&\n  lora: {r: 2, alpha: 4}/; $a checkpoint: {directory: scratch/llama-lora, every_steps: 2}' job.yaml >lora.yaml
chmod a+rx lora.yaml
run sbatch --wait lora.yaml
expect "so do adapters" equal "$rc" 0
mkdir profiles
cp "$SAILOR_CLUSTER_DIR"/profiles/*.json profiles/
cp "$golden/probed.json" profiles/network.json
cd ..
chown -R "$SAILOR_CLUSTER_USER" site
cp -a site template

ran=0
declare -A seen=()
for guide in "$root/README.md" "$root"/etc/doc/*.md; do
  mapfile -t commands < <(commands_of "$guide")
  rm -rf site && cp -a template site
  for command in "${commands[@]}"; do
    what="$(basename "$guide"): $command"
    if foreign "$command" || [ -n "${seen[$command]:-}" ]; then continue; fi
    seen[$command]=yes
    row=$(elsewhere | command=$command awk -F ' [|] ' '$1 == ENVIRON["command"]')
    if [ -n "$row" ]; then
      IFS='|' read -r _ file text <<<"$row"
      file=${file// /} text=${text# }
      expect "$what: $file runs it" grep -qF -- "$text" "$root/$file"
      continue
    fi
    ran=$((ran + 1))
    rc=0
    typed "$command" >"$work/.in"
    (cd site && user env PATH="$work/site/bin:$PATH" timeout 150 bash -c "$(here "$command")" <"$work/.in" >"$work/.out" 2>"$work/.err") || rc=$?
    out=$(tail -c 2000 "$work/.out") err=$(tail -c 2000 "$work/.err")
    expect "$what" equal "$rc" 0
    if job=$(job_submitted) && [ -n "$job" ]; then
      wait_until 120 job_ended "$job"
      expect "$what: the job ended well" contains "$(scontrol show job -o "$job" | head -1)" "JobState=COMPLETED"
    fi
    wait_idle
  done
done
expect "the guides have commands" test "$ran" -ge 40
finish
