#!/bin/bash
# The user's resource options limit the planner, wherever they are given; contradictions are errors; other options pass through to Slurm,
# for every component.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

features() { scontrol update nodename="$1" features="$2" activefeatures="$2"; }
restore() {
  scancel -u "$SAILOR_CLUSTER_USER" 2>/dev/null || true
  features a[1-2],v[1-2],t[1-2] "" 2>/dev/null || true
  scontrol update partitionname=fast allowgroups=ALL maxtime=12:00:00 maxnodes=UNLIMITED allowaccounts=ALL state=up oversubscribe=no || true
  scontrol delete reservationname=mine 2>/dev/null || true
  scontrol delete reservationname=later 2>/dev/null || true
}
planned() { run sbatch --sailor-objective=throughput "$@"; }
nodes() { nodes_of_command "$out"; }
# plans WHAT NODES OPTION...: a dry run that plans exactly these nodes.
plans() {
  local what=$1 wanted=$2
  shift 2
  planned --sailor-dry-run "$@" tiny.yaml
  expect "$what" equal "$rc $(nodes)" "0 $wanted"
}
refused() { # TEXT OPTION...
  local text=$1
  shift
  planned --sailor-dry-run "$@" tiny.yaml
  expect "$*: exit 2" equal $rc 2
  expect "$*: one line" one_error "$err"
  expect "$*: says $text" contains "$err" "$text"
}

# Sources: command line, #SBATCH lines, environment.
plans "--nodelist" "a1 v2" -w a1,v2
planned --sailor-dry-run --nodelist='v[1-2]' tiny.yaml
expect "--nodelist as a host list" contains "$out" " --nodelist=v1,v2 "
plans "--partition" "v1 v2" -p medium
plans "--exclude" "a2" -p fast -x a1
plans "--nodes" "a1" -N 1
planned --sailor-dry-run -N 1-3 tiny.yaml
expect "--nodes as a range: its upper end" test "$(nodes | wc -w)" -le 3
sed 's/^#SBATCH.*/&\n#SBATCH --partition=small -N1/' tiny.yaml >lines.yaml
chmod a+r lines.yaml
planned --sailor-dry-run lines.yaml
expect "in #SBATCH lines" equal "$(nodes)" t1
planned --sailor-dry-run -p fast lines.yaml
expect "the command line wins over them" equal "$(nodes)" a1
export SBATCH_PARTITION=small
plans "in the environment" "t1 t2"
unset SBATCH_PARTITION

features a2,v1 "rack1,big"
features t1 rack1
export SBATCH_CONSTRAINT=rack1
plans "--constraint in the environment" "t1" -p small
unset SBATCH_CONSTRAINT
plans "--constraint with &" "a2 v1" -C 'rack1&big'
plans "--constraint with |" "t1" -p small -C 'nowhere|rack1'
planned --sailor-dry-run -C nowhere tiny.yaml
expect "no node has the feature: exit 3" equal $rc 3
expect "and says so" contains "$err" "has not the features of --constraint"
planned --sailor-job=tiny.yaml -C 'rack1&big' -o /dev/null body.sh
expect "with --constraint it starts" submitted
expect "on these nodes" equal "$(nodes_of_job "$job")" "a2 v1"
expect "every component asks for the feature" equal "$(scontrol show job -o "$job" | grep -c 'Features=rack1&big')" 2
release

# Reservations.
scontrol create reservationname=mine starttime=now duration=60 nodes=a1,v1 users="$SAILOR_CLUSTER_USER" >/dev/null
scontrol create reservationname=later starttime=now+3hours duration=60 nodes=t1 users="$SAILOR_CLUSTER_USER" >/dev/null
plans "reserved nodes are not free" "a2" -p fast
plans "--reservation opens them, and only them" "a1 v1" --reservation=mine
refused "did you mean \"mine\"" --reservation=mien
refused "begins in" --reservation=later
planned --sailor-job=tiny.yaml --reservation=mine -o /dev/null body.sh
expect "in the reservation it starts" submitted
expect "on its nodes" equal "$(nodes_of_job "$job")" "a1 v1"
touch go # the nodes of the reservation are "reserved", not idle, after it
expect "and ends" wait_until 60 no_jobs
rm -f go
plans "a job that ends before a reservation may use its nodes" "t1 t2" -p small -t 60
plans "one that would not end may not" "t2" -p small -t 240
scontrol delete reservationname=mine
scontrol delete reservationname=later
expect "nodes come back from a reservation" wait_until 60 all_idle

# Free resources: a partition's own limits, nodes that are partly used by others.
partition() { scontrol update partitionname=fast "$@"; }
partition allowgroups=root
plans "a partition that is closed to my groups" "v1 v2" -x t1,t2
partition allowgroups=ALL maxtime=10
plans "one that is too short" "v1 v2" -x t1,t2 -t 11
partition maxtime=12:00:00 maxnodes=1
plans "one that gives a job one node" "a1" -p fast
partition maxnodes=UNLIMITED allowaccounts=physics
plans "one that refuses the account" "v1 v2" -x t1,t2 --account=biology
partition allowaccounts=ALL state=down
plans "one that is down" "v1 v2" -x t1,t2
partition state=up oversubscribe=exclusive
plans "an exclusive one" "a1 a2" -p fast
partition oversubscribe=no
run sbatch -p fast -w a1 -n 1 --gres=gpu:2 -o /dev/null --wrap 'sleep 100'
used=$(sed -n 's/^Submitted batch job //p' <<<"$out")
wait_until 20 eval '[ "$(squeue -h -j "$used" -o %T)" = RUNNING ]'
plans "a node in part used counts" "a1 a2" -p fast
planned --sailor-dry-run -p fast -w a1 tiny.yaml
expect "with what is left" contains "$out" "--ntasks=2 --ntasks-per-node=2 --cpus-per-task=16 --mem="
plans "not for whole nodes" "a2" -p fast --exclusive
echo 'request: {whole_nodes: true}' >>"$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
run sailor cluster
expect "then it is listed with the reason" contains "$out" "a1: 2 of 4 GPUs in use"
sed -i '$d' "$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
scancel "$used"
expect "until it is free again" wait_until 20 all_idle

# Options that contradict a plan.
refused "--array" --array=1-3
refused "--switches" --switches=1
refused "--contiguous" --contiguous
refused "one reservation" --reservation=a,b
refused "is not a feature expression" -C 'a&&b'
refused "counts and brackets" -C '[rack1|rack2]'
refused "has no node \"zz\"" -w zz
refused "--gres" --gres=gpu:1
refused "--ntasks" --ntasks=3

# What the site allows holds whatever the user's environment, options and files say.
site=$SAILOR_CLUSTER_DIR/etc/sailor.yaml
cp "$site" site.before
grep -v '^gres' "$site" | sed "s#profiles:.*#profiles: [$SAILOR_CLUSTER_DIR/profiles]#; s#catalog:.*#catalog: $SAILOR_CLUSTER_DIR/etc/catalog.yaml#" >own.yaml
printf 'gres: {a100: T4-16}\nelastic: {grow: true}\npolicy: {planning: true}\n' >>own.yaml
chmod a+r own.yaml
policy() { { cat site.before; echo "policy: $1"; } >"$site"; }
denied() { # WHAT TEXT OPTION...: nothing is planned, also with a site config of the user
  local what=$1 text=$2
  shift 2
  for config in "$site" "$PWD/own.yaml"; do
    export SAILOR_CONFIG=$config
    planned --sailor-dry-run "$@" tiny.yaml
    expect "$what: exit 1 (${config##*/})" equal $rc 1
    expect "$what: one line (${config##*/})" one_error "$err"
    expect "$what: says $text (${config##*/})" contains "$err" "$text"
  done
  export SAILOR_CONFIG=$site
}
policy '{planning: false, reason: maintenance until Friday}'
denied "planning is off" "planning is switched off on this cluster: maintenance until Friday (policy in $site)"
run sbatch --hold -o /dev/null --wrap true
expect "plain jobs are not concerned" equal $rc 0
scancel "${out##* }"
policy '{users: [nobody-else], groups: [nobody-else]}'
denied "others may plan" "does not plan jobs of user $SAILOR_CLUSTER_USER"
policy "{users: [$SAILOR_CLUSTER_USER], max_gpus: {A100-40: 4, V100-16: {dev-a: 0}, T4-16: 0}}"
for config in "$site" "$PWD/own.yaml"; do
  export SAILOR_CONFIG=$config SAILOR_MAX_GPUS=A100-40=8
  planned --sailor-dry-run tiny.yaml
  expect "GPUs of a job, the environment (${config##*/})" equal "$rc $(nodes)" "0 a1"
  planned --sailor-dry-run --sailor-max-gpus=A100-40=8,V100-16=8,V100-16@dev-a=8,T4-16=4 tiny.yaml
  expect "and an option raises it not (${config##*/})" equal "$rc $(nodes)" "0 a1"
  planned --sailor-dry-run --sailor-max-gpus=A100-40=0 tiny.yaml
  expect "but may lower it (${config##*/})" equal $rc 3
  unset SAILOR_MAX_GPUS
done
policy "{max_gpus: {total: 6}}"
export SAILOR_CONFIG=$PWD/own.yaml
planned --sailor-dry-run --sailor-max-gpus=total=16 tiny.yaml
expect "GPUs of a job in all" test "$rc" -eq 0 -a "$(gpus_of_command "$out")" -le 6
planned --sailor-dry-run --sailor-max-gpus=total=4 tiny.yaml
expect "an option lowers them" test "$rc" -eq 0 -a "$(gpus_of_command "$out")" -le 4
export SAILOR_CONFIG=$site
cp site.before "$site"

# All other options pass through, to every component.
run sbatch --hold -o /dev/null --wrap true
first=$(sed -n 's/^Submitted batch job //p' <<<"$out")
planned --sailor-max-gpus=T4-16=0 --dependency=afterok:"$first" --begin=now+1hour --signal=B:USR1@60 --account=physics \
  --job-name=through --nice=7 -t 11 --mincpus=2 -c 2 tiny.yaml
job=$(sed -n 's/^Submitted batch job //p' <<<"$out")
shown=$(scontrol show job -o "$job")
expect "two components" equal "$(wc -l <<<"$shown")" 2
for text in "JobName=through" "Dependency=afterok:$first" "Account=physics" "Nice=7" "TimeLimit=00:11:00" "CPUs/Task=2" \
  "MinCPUsNode=[2-9]" "Comment=sailor: 8 A100-40 + 8 V100-16"; do
  expect "$text" equal "$(grep -c "$text" <<<"$shown")" 2
done
expect "--begin is noted" contains "$err" "note: planned for the nodes that are free now, but --begin starts the job later"
expect "squeue shows the comment" contains "$(squeue -h -j "$job" -o %k)" "s/iteration"
scancel "$job" "$first"
planned --comment=mine --hold --sailor-max-gpus=T4-16=0,V100-16=0 tiny.yaml
job=$(sed -n 's/^Submitted batch job //p' <<<"$out")
expect "a comment of the user stays" equal "$(squeue -h -j "$job" -o %k)" mine
scancel "$job"
finish
