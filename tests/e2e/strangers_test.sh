#!/bin/bash
# Another user of the machine, without a key, attacks the ports of a training job: unknown keys, garbage, oversized messages, and a replay
# of a real connection. The attack gets no data and has no effect: no event, no lost process, the losses of the undisturbed run.
set -euo pipefail
[ "$UID" = 0 ] || { echo "skipped: another user's processes need root"; exit 77; }
command -v ss >/dev/null || { echo "skipped: there is no ss"; exit 77; }
. "$(dirname "${BASH_SOURCE[0]}")/elastic_lib.sh" strangers
mkdir -m 777 "$work/outside"
cp "$SAILOR_BUILD_DIR/bin/stranger" "$work/outside/"  # where another user can start it

setup_elastic 100000 fp64
echo 'encrypt_data: true' >>"$SAILOR_CLUSTER_DIR/etc/sailor.yaml"
sed -i 's/enabled: true/enabled: true, grow_every: 0/' job.yaml
sed -i 's/steps: 100000/steps: 150/' reference.yaml
train_reference
wait_idle

expect "submitted" start_elastic
expect "it trains" wait_until 60 steps_done 5
controller=$(pids_of sailor-run)

# address_of PID: its listening address; if it listens on every address, the first rank's.
address_of() { ss -Hltnp | awk -v pid="pid=$1," 'index($0, pid) && !found { print $4; found = 1 }'; }
# stranger WORDS: runs it as another user; its line is in said.
stranger() {
  said=$(runuser -u daemon -- timeout 240 "$work/outside/stranger" "$@" 2>&1) || true
  echo "  stranger $*: $said"
}
# Data of the job that must not leak.
secrets=$(tr '\0' '\n' <"/proc/$(pids_of sailor-rank | head -1)/environ" | sed -n 's/^SAILOR_RUN_DIRECTORY=//p')/secrets
grep -xE '.{40,64}' "$secrets" >"$SAILOR_CLUSTER_DIR/secrets"
expect "the job has two secrets" test "$(wc -l <"$SAILOR_CLUSTER_DIR/secrets")" = 2
expect "its data is encrypted" grep -qx encrypted "$secrets"
expect "only their owner can read them" test "$(stat -c '%a %u' "$secrets")" = "600 $(stat -c %u "/proc/$controller")"
expect "its processes do not show them" \
  test -z "$(cat /proc/[0-9]*/{cmdline,environ} 2>/dev/null | tr '\0' '\n' | grep -F -f "$SAILOR_CLUSTER_DIR/secrets")"
expect "no other file has them" test "$(grep -rlF -f "$SAILOR_CLUSTER_DIR/secrets" "$work" || true)" = "$secrets"
job_record() { scontrol show job -dd; scontrol show step; scontrol write batch_script "$(squeue -ho %A | head -1)" -; }
expect "Slurm does not show them" test -z "$(job_record 2>&1 | grep -F -f "$SAILOR_CLUSTER_DIR/secrets")"
expect "others cannot read its environment" test -z "$(runuser -u daemon -- cat "/proc/$controller/environ" 2>/dev/null)"

# Real connections for the replay: those of a new rank and of a new generation.
victim=$(working_rank_on "$(nodes_in_use | tail -1)")
mapfile -t old < <(ranks | awk -v victim="$victim" '$1 != victim { print $1 }' | head -2)
data=("$(address_of "${old[0]}")" "$(address_of "${old[1]}")")
control=${data[0]%:*}:$(address_of "$controller" | sed 's/.*://')
recorders=()
for port in "$control" "${data[@]}"; do
  "$SAILOR_BUILD_DIR/bin/stranger" record "$port" "$work/outside/$port" 150 >"$work/outside/$port.said" 2>&1 &
  recorders+=($!)
done
resumed=$(count_events resumed)
kill -9 "$victim"
expect "a rank is lost, and training goes on" wait_until 90 more_events resumed "$resumed"
used_again() { all_ranks_there 8 && more_events resumed "$resumed" && [ "$(field "$(last_event running)" ranks)" = 8 ]; }
expect "it is started again" wait_until 90 used_again
kill -TERM "${recorders[@]}"
wait "${recorders[@]}" || true
chmod -R a+r "$work/outside"
expect "connections to the control port were recorded" grep -q '^[1-9]' "$work/outside/$control.said"
recorded=
for port in "${data[@]}"; do if grep -q '^[1-9]' "$work/outside/$port.said"; then recorded=$port; fi; done
expect "connections to a data port were recorded" test -n "$recorded"
# The job's own search for a better plan, which follows one that was cut short, would be an event. It runs in a thread of that niceness.
searches() { ps -L -o ni= -p "$controller" | grep -q 10; }
at_rest_for_good() { at_rest && ! searches && sleep 1 && ! searches && at_rest; }
expect "the plan is at rest" wait_until 90 at_rest_for_good
sleep 2

descriptors() { ls "/proc/$1/fd" | wc -l; }
rss_mib() { awk '/VmRSS/ { print int($2 / 1024) }' "/proc/$1/status"; }
events_before=$(wc -l <"$events") ranks_before=$(ranks) open_before=$(descriptors "$controller") rss_before=$(rss_mib "$controller")
rank=${old[0]}
[ "${recorded:-}" != "${data[1]}" ] || rank=${old[1]}
rank_open=$(descriptors "$rank") rank_rss=$(rss_mib "$rank")
steps=$(wc -l <"sailor-$job/metrics.jsonl")

for port in "$control" "${recorded:-${data[0]}}"; do
  what=control
  [ "$port" = "$control" ] || what=data
  stranger keyless "$port"
  expect "$what port: a stranger's key gets no message" equal "$said" none
  stranger garbage "$port" 5
  expect "$what port: garbage gets no answer" contains "$said" "; none"
  stranger oversized "$port"
  expect "$what port: oversized messages get no answer" contains "$said" "none, "
  stranger replay "$port" "$work/outside/$port"
  expect "$what port: what was recorded gets no answer" contains "$said" "; none"
done

expect "it trains on" wait_until 90 steps_done $((steps + 20))
expect "no event" equal "$(tail -n +$((events_before + 1)) "$events")" ""
expect "no process was lost" equal "$(ranks)" "$ranks_before"
let_go() { [ "$(descriptors "$controller")" -le $((open_before + 2)) ] && [ "$(descriptors "$rank")" -le $((rank_open + 2)) ]; }
expect "connections are let go" wait_until 60 let_go
expect "memory is not: controller $rss_before -> $(rss_mib "$controller") MiB, rank $rank_rss -> $(rss_mib "$rank") MiB" \
  test "$(rss_mib "$controller")" -le $((rss_before + 40)) -a "$(rss_mib "$rank")" -le $((rank_rss + 40))
expect "it goes on" wait_until 60 steps_done 160
expect "its losses are those of the undisturbed run" \
  same_losses "sailor-$reference/metrics.csv" "sailor-$job/metrics.csv" 1e-9 140
scancel "$job"
expect "no process is left" wait_until 30 no_training_processes
finish
