#!/bin/bash
# A job trains across two partitions with two TP degrees, on exactly the planned nodes; it succeeds, prints its measurements, and leaves no
# processes. Bad input fails before anything starts.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$e2e/training_lib.sh"

setup_training 60
rm "$SAILOR_CLUSTER_DIR"/profiles/gpt2-*.json
measure_profile job.yaml --seconds 4 --tp 1,2 --microbatches 1,2
expect "submitted" start_training
expect "it trains" wait_until 60 steps_done 1
expect "on exactly the planned nodes" equal "$(nodes_of_job "$job")" "a1 a2 v2"
expect "across partitions" equal "$(partitions_of_job "$job")" "fast medium"
expect "one rank per GPU of the plan" equal "$(pids_of sailor-rank | wc -l)" 4
titles=$(for pid in $(pids_of sailor-rank); do tr '\0' '\n' <"/proc/$pid/cmdline" | head -1; done | sort)
program=$(command -v sailor-rank)
title="sailor: rank 0 p0 s0 t0/2 g1"
expect "which ps shows by pipeline, stage and generation" equal "$(head -1 <<<"$titles")" "${title::${#program}}" # no longer than the command
expect "an agent on every node" equal "$(pids_of sailor-agent | wc -l)" 3
expect "it ends" wait_until 120 job_ended "$job"
summary=sailor-$job/summary.json
expect "well" equal "$(json "$summary" status)" finished
expect "after all steps" equal "$(json "$summary" steps)" 60
expect "with exit code 0" contains "$(scontrol show job -o "$job" | head -1)" "ExitCode=0:0"
first=$(json "$summary" first_loss) last=$(json "$summary" last_loss)
letters=$(entropy text.txt)
expect "the loss falls from that of a guess ($first) to below that of single letters ($last < $letters)" \
  awk "BEGIN { exit !($first > 5.3 && $last < $letters - 0.1) }"
expect "it says that devices were emulated" equal "$(json "$summary" emulated)" true
expect "measured and predicted time are both there, and never faster than emulated: $(json "$summary" measured_iteration_s) s" \
  awk "BEGIN { exit !($(json "$summary" measured_iteration_s) > 0.5 * $(json "$summary" predicted_iteration_s)) }"
expect "no stage held more activations than 1F1B allows" \
  awk '/"max_in_flight"/ { held = $2 + 0 } /"in_flight_limit"/ { if (held > $2 + 0 || held < 1) bad = 1; n++ } END { exit bad || n != 4 }' "$summary"
expect "a line per step" equal "$(grep -c '^step ' "$output")" 60
expect "a row per step for spreadsheets" equal "$(wc -l <"sailor-$job/metrics.csv")" 61
expect "the loss on text that is not trained on, when due" equal "$(grep -c '^step .* | val ' "$output")" 3
expect "it fell as well: $(json "$summary" validation_loss)" awk "BEGIN { exit !($(json "$summary" validation_loss) < $letters - 0.1) }"
expect "the rate warms up and falls" has_text "$output" '^step  *1/60 .* lr 8.3e-04 .*'
expect "the traced step has every rank" equal "$(grep -c '"thread_name"' "sailor-$job/trace-step-5.json")" 4
expect "TensorBoard finds events" test -s "$(echo "sailor-$job"/tensorboard/events.out.tfevents.*)"
expect "the summary is printed" has_text "$output" '^iteration: measured .* predicted'
expect "no process is left" wait_until 10 no_training_processes
expect "files are whole" whole_files

# Bad input: one error line, exit code 2, nothing started.
refused() {  # WHAT TEXT OPTIONS...
  local what=$1 text=$2
  shift 2
  run sailor run "$@"
  expect "$what: exit 2" equal $rc 2
  expect "$what: one line" one_error "$err"
  expect "$what: says so" contains "$err" "$text"
}
refused "no plan" "carries no plan" --local job.yaml
sed 's/text.txt/absent.txt/' job.yaml >bad.yaml
refused "no data" "data.train" --local bad.yaml --plan plan.json
sed 's/global_batch: 8/global_batch: 16/' job.yaml >bad.yaml
refused "another job's plan" "global" --local bad.yaml --plan plan.json
head -c 200 plan.json >bad.json
refused "a torn plan" "bad.json" --local job.yaml --plan bad.json
refused "no job spec" "absent.yaml" --local absent.yaml --plan plan.json
finish
