#!/bin/bash
# The second example job: the planner chooses two partitions and two TP degrees in one plan, and the job trains on exactly those nodes. The
# profile is a fixture, so that the plan does not depend on the machine.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

make_text >text.txt
sed 's/steps: [0-9]*/steps: 5/' "$e2e/../../etc/jobs/mixed.yaml" >job.yaml
cp "$e2e/fixtures/mixed_profile.json" "$SAILOR_CLUSTER_DIR/profiles/"
chmod a+r job.yaml text.txt "$SAILOR_CLUSTER_DIR/profiles/mixed_profile.json"

run sbatch --sailor-objective=throughput job.yaml
job=$(job_submitted)
expect "submitted" test -n "$job"
expect "the table is shown" contains "$err" "BOUND BY"
expect "it trains" wait_until 60 steps_done 1
plan=sailor-$job/plan.json
degrees=$(grep -o '"tp": *[0-9]*' "$plan" | grep -o '[0-9]*$' | sort -u | wc -l)
expect "the planner chose two TP degrees or more" test "$degrees" -ge 2
expect "over two partitions" equal "$(partitions_of_job "$job")" "fast medium"
expect "scontrol shows the planned nodes" equal "$(nodes_of_job "$job")" "$(nodes_of_plan "$plan")"
expect "it ends" wait_until 120 job_ended "$job"
expect "well" equal "$(json "sailor-$job/summary.json" status)" finished

# The inputs of the plan stay with the run, even if the site's files change.
expect "the submission's nodes are kept" contains "$(cat "sailor-$job/planning/cluster.yaml")" "partition: small"
run sailor report "$job" -o here.html
expect "there is a report" equal "$rc$err" 0
rm "$SAILOR_CLUSTER_DIR/profiles/mixed_profile.json"
run env SAILOR_CONFIG=/nowhere/sailor.yaml sailor report "$job" -o elsewhere.html
expect "the report is the same without the site" cmp here.html elsewhere.html
expect "it has a prediction" has_text here.html "<h2>Prediction"
run env SAILOR_CONFIG=/nowhere/sailor.yaml sailor explain --run "$job"
expect "the plan is explained without the site" contains "$out" "the planner's own choice"
finish
