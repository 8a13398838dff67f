#!/bin/bash
# Plain jobs are untouched: sbatch, srun and salloc without a --sailor option behave the same without the plugin, with it, and with a broken
# installation of it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cp "$plugstack" "$work/plugstack.good"
restore() { cp "$work/plugstack.good" "$plugstack"; rm -f "$SAILOR_CLUSTER_DIR/profiles/broken.json"; }
plugin=$(awk '{print $2}' "$work/plugstack.good")
printf '#!/bin/bash\n#SBATCH -n1 -o script.out\necho "argument $1" name $SLURM_JOB_NAME\nenv | grep SPANK | sort\n' >script.sh
chmod a+rx script.sh

# All output of some plain commands, without job numbers.
plain_behaviour() {
  rm -f ./*.out
  run sbatch -W -J named script.sh 7
  echo "sbatch file: $rc $(sed 's/job [0-9]*/job N/' <<<"$out")"; cat script.out
  rc=0; out=$(printf '#!/bin/bash\n#SBATCH -o stdin.out\ncat "$0" | wc -c\n' | user timeout 60 sbatch -W 2>"$work/.err") || rc=$?
  echo "sbatch pipe: $rc $(sed 's/job [0-9]*/job N/' <<<"$out")"; cat stdin.out
  rc=0; out=$(user timeout 60 sbatch -W -o redirected.out <script.sh 2>"$work/.err") || rc=$?
  echo "sbatch < file: $rc $(sed 's/job [0-9]*/job N/' <<<"$out")"
  run sbatch -W -o wrap.out --wrap 'exit 3'; echo "sbatch --wrap: $rc"
  run sbatch -p nowhere script.sh; echo "sbatch to a partition that is not there: $rc"
  # An sbatch that reads no script does not wait for its standard input.
  for option in --version --usage --bogus; do
    rc=0; user timeout 5 sbatch $option >/dev/null 2>&1 < <(exec sleep 8) || rc=$?
    echo "sbatch $option with a silent pipe: $rc"
  done
  run srun -n2 echo hello; echo "srun: $rc $out"
  run srun false; echo "srun false: $rc"
  run salloc -n1 srun echo inside; echo "salloc: $rc $out"
  # sbatch does not consume the input of a loop.
  echo "loop: $(printf 'a\nb\n' | while read -r line; do user timeout 60 sbatch -o /dev/null --wrap true >/dev/null 2>&1 </dev/null; echo "$line"; done | paste -sd' ')"
  echo "file loop: $(printf 'a\nb\n' | while read -r line; do user timeout 60 sbatch -o /dev/null script.sh >/dev/null 2>&1; echo "$line"; done | paste -sd' ')"
  wait_idle
}

: >"$plugstack"
baseline=$(plain_behaviour)
echo "$baseline"
expect "the baseline is what Slurm does" contains "$baseline" "salloc: 0 inside"

variant() { # WHAT PLUGSTACK-LINE
  echo "$2" >"$plugstack"
  expect "plain jobs are the same $1" equal "$(plain_behaviour)" "$baseline"
}
variant "with the plugin" "optional $plugin config=$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
export SAILOR_OBJECTIVE=throughput SAILOR_MAX_GPUS=T4-16=0 # the environment alone plans nothing
variant "with SAILOR_* in the environment" "optional $plugin config=$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
unset SAILOR_OBJECTIVE SAILOR_MAX_GPUS
variant "when the library is missing" "optional $work/missing.so"
echo "not a library" >"$work/broken.so"
variant "when the library is broken" "optional $work/broken.so"
variant "when plugstack.conf has a slip" "optional $plugin confg=/nowhere bogus"
echo '{ this is: not [a site config' >"$work/broken.yaml"
chmod a+r "$work/broken.yaml"
site_config=$SAILOR_CONFIG
export SAILOR_CONFIG=$work/broken.yaml
variant "when the site config is broken" "optional $plugin config=$work/broken.yaml"
run sbatch --sailor-objective=throughput tiny.yaml
expect "a planned job says that the site config is broken" one_error "$err"
expect "and exits 2" equal $rc 2
mkfifo -m 666 "$work/pipe.yaml" # whoever opens it hangs
export SAILOR_CONFIG=$work/pipe.yaml
variant "and never open the site config" "optional $plugin config=$work/pipe.yaml"
export SAILOR_CONFIG=$site_config
echo '{"sailor_layer_profile": 1, "gpu_type":' >"$SAILOR_CLUSTER_DIR/profiles/broken.json"
chmod a+r "$SAILOR_CLUSTER_DIR/profiles/broken.json"
variant "when a profile is broken" "optional $plugin config=$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
if [ "$UID" = 0 ]; then
  run sbatch --sailor-objective=throughput tiny.yaml
  expect "a planned job does without a broken profile of another user" equal $rc 0
  expect "and says so" contains "$err" "note: a profile of user 0 is not used: $SAILOR_CLUSTER_DIR/profiles/broken.json:1: "
  scancel -u "$SAILOR_CLUSTER_USER"
  chown "$SAILOR_CLUSTER_USER" "$SAILOR_CLUSTER_DIR/profiles/broken.json"
fi
run sbatch --sailor-objective=throughput tiny.yaml
expect "a planned job says that its user's profile is broken" contains "$err" "broken.json:1: "
expect "on one line" one_error "$err"
expect "and exits 2" equal $rc 2
finish
