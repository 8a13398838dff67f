#!/bin/bash
# Events between planning and start: concurrent submissions, a requeued job, a drained planned node, a dead slurmctld. A job runs on the
# nodes of its plan, or not at all.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

restore() {
  scontrol update nodename=t[1-2] state=resume 2>/dev/null || true
  rm -f "$SAILOR_CLUSTER_DIR/profiles/slow.json"
  sinfo -h >/dev/null 2>&1 || start_slurmctld
}
start_slurmctld() { slurmctld >/dev/null 2>&1 </dev/null && wait_until 20 sinfo -h >/dev/null; }

# Two users submit jobs concurrently (SAILOR_SUBMISSIONS each); one queues for busy nodes, the other plans on free ones and retries if there
# are none. The job itself checks its plan.
cat >check.sh <<'SCRIPT'
#!/bin/bash
planned=$({ printf '\x1f\x8b\x08\x00\x00\x00\x00\x00'; base64 -d <<<"$SLURM_SPANK_SAILOR_PLAN_0"; } | gzip -dc 2>/dev/null |
  grep -o '"node": *"[^"]*"' | cut -d'"' -f4 | sort -u | paste -sd,)
given=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sort | paste -sd,)
[ "$planned" = "$given" ] && echo "right $given" >>"landed.$1" || echo "wrong $planned $given" >>"landed.$1"
sleep 1 # so that they meet, however quick the machine is
SCRIPT
chmod a+rx check.sh
: >landed.queue; : >landed.free
chmod a+w landed.*
options=(--sailor-objective=throughput --sailor-job=tiny.yaml --sailor-time-limit=1 -p small,medium -N 1 --open-mode=append -o submit.out)
count=${SAILOR_SUBMISSIONS:-15}
submit() { # NAME OPTION...
  local name=$1 i accepted=0 tries=0 rc
  shift
  while [ $accepted -lt $count ] && [ $tries -lt $((8 * count)) ]; do
    tries=$((tries + 1))
    rc=0
    user timeout 60 sbatch "${options[@]}" "$@" check.sh "$name" >/dev/null 2>>"submit.$name" </dev/null || rc=$?
    case $rc in 0) accepted=$((accepted + 1)) ;; 3) sleep 0.1 ;; *) return 1 ;; esac
  done
  echo $accepted >"accepted.$name"
}
submit queue --sailor-wait=nodes --sailor-pin &
submit free --sailor-wait=plan &
wait
expect "both submitted $count jobs" equal "$(cat accepted.queue accepted.free | paste -sd' ')" "$count $count"
expect "all ended" wait_until $((60 + 3 * count)) no_jobs # one after the other, where many wait for one node
expect "each ran on the nodes of its own plan" equal "$(cat landed.* | cut -d' ' -f1 | sort | uniq -c | tr -s ' ')" " $((2 * count)) right"
expect "on several nodes" test "$(cat landed.* | sort -u | wc -l)" -ge 2
expect "who waits is told for what" grep -q "note: the job waits for its nodes: " submit.queue
grep -h "replanning" submit.free | sort | uniq -c || true
wait_idle

# A requeued job keeps its plan and its nodes.
run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -p small --requeue -o /dev/null body.sh
expect "submitted" submitted
before=$(cat "plan.$job")
rm -f "ready.$job" "plan.$job"
scontrol requeue "$job"
begun_again() { restart_now; wait_until 3 test -s "ready.$job"; }
if wait_until 90 begun_again; then
  expect "requeued: the same plan" equal "$(cat "plan.$job")" "$before"
  expect "requeued: on its nodes" equal "$(nodes_of_job "$job")" "$(nodes_of_plan "plan.$job")"
else
  not_ok "requeued: starts again"
fi
release

# A node is drained between plan and start: the job waits for it, and then runs there.
run sbatch --sailor-objective=throughput --sailor-job=tiny.yaml -p small --hold -o /dev/null body.sh
job=$(sed -n 's/^Submitted batch job //p' <<<"$out")
scontrol update nodename=t1 state=drain reason=test
scontrol release "$job"
sleep 2
expect "a drained node: the job waits" equal "$(squeue -h -j "$job" -o %T)" PENDING
scontrol update nodename=t1 state=resume
expect "and runs when it is back" wait_until 30 test -s "ready.$job"
expect "on the planned nodes" equal "$(nodes_of_job "$job")" "t1 t2"
release

# slurmctld dies during planning: one error line, nothing submitted. The planner blocks on a profile that never ends: for so short a time that
# sbatch finds out, or for so long that the nodes are looked at again before.
dies() { # WHAT BLOCKED_S
  mkfifo -m 600 "$SAILOR_CLUSTER_DIR/profiles/slow.json"
  if [ "$UID" = 0 ]; then chown "$SAILOR_CLUSTER_USER" "$SAILOR_CLUSTER_DIR/profiles/slow.json"; fi # a pipe of others is not read
  user timeout 100 sbatch --sailor-objective=throughput tiny.yaml >killed.out 2>killed.err </dev/null &
  planning=$!
  exec 9>"$SAILOR_CLUSTER_DIR/profiles/slow.json" # as soon as the planner reads it
  kill -9 "$(cat "$SAILOR_CLUSTER_DIR/run/slurmctld.pid")"
  sleep "$2"
  cat "$e2e/fixtures/tiny_profile.json" >&9
  exec 9>&-
  rc=0
  wait $planning || rc=$?
  out=$(cat killed.out) err=$(cat killed.err)
  rm -f "$SAILOR_CLUSTER_DIR/profiles/slow.json"
  expect "slurmctld killed, $1: exit 1" equal $rc 1
}
# State that was not saved before the kill is restored.
revive() {
  start_slurmctld
  squeue -h -o %A | sort -u | xargs -r scancel
  scontrol update nodename=t[1-2] state=resume 2>/dev/null || true
  wait_idle
}
before=$(last_job)
dies "long before the submission" 6
expect "one line" one_error "$err"
expect "which names it" contains "$err" "slurmctld"
revive
dies "just before it" 0.3
expect "one line, of Slurm or of the plugin" equal "$(grep -cE '^(sbatch: error|sailor): .*(slurm controller|slurmctld)' <<<"$err")" 1
expect "no other error" equal "$(grep -cE 'error|sailor:' <<<"$err")" 1
revive
expect "nothing was submitted" test "$(last_job)" -le "$before" # fewer: what slurmctld had not saved
finish
