# Sourced by up.sh: the accounting of a cluster with --accounts. A private mariadbd (no network, no privileges but those of its socket's
# directory) in $cluster_dir/database, slurmdbd on port $dbd_port, and the accounts and QOS that tests use:
#
#   accounts  physics (the default of $user) and biology, with the user in both
#   QOS       normal   the default, without limits; preempts low
#             limited  6 GPUs, 2 jobs and 1 hour per user; preempts low
#             low      preemptible: its jobs are requeued after 2 s

accounts_programs=(mariadbd mariadb-install-db slurmdbd sacctmgr)

# Ends with 77, by which tests are skipped, when a program is missing.
require_accounts_programs() {
  local program missing=()
  for program in "${accounts_programs[@]}"; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} = 0 ] && return
  say "--accounts: not installed: ${missing[*]} (apt-get install mariadb-server slurmdbd slurm-client)"
  exit 77
}

write_slurmdbd_conf() {
  cat >"$cluster_dir/etc/slurmdbd.conf" <<CONF
AuthType=auth/munge
AuthInfo=socket=$cluster_dir/munge/munge.socket
DbdHost=localhost
DbdPort=$dbd_port
SlurmUser=$slurm_user
LogFile=$cluster_dir/log/slurmdbd.log
PidFile=$cluster_dir/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc=slurm
StorageUser=$slurm_user
CONF
  chmod 600 "$cluster_dir/etc/slurmdbd.conf"
  [ "$UID" != 0 ] || chown "$slurm_user" "$cluster_dir/etc/slurmdbd.conf"
}

# retry SECONDS COMMAND...: until it succeeds. Its last output goes to the log of the start.
retry() {
  local deadline=$((SECONDS + $1)) output
  shift
  until output=$("$@" 2>&1); do
    if [ $SECONDS -ge $deadline ]; then say "$* failed: $output"; return 1; fi
    sleep 0.05
  done
}

start_database() {
  local directory=$cluster_dir/database data=$cluster_dir/database/data as=()
  mkdir -p "$directory"
  chmod 700 "$directory"
  if [ "$UID" = 0 ]; then chown "$slurm_user" "$directory"; as=(--user="$slurm_user"); fi
  local options=(--no-defaults --datadir="$data" --innodb-log-file-size=4M --innodb-buffer-pool-size=8M --innodb-flush-method=nosync
    --innodb-doublewrite=OFF --sync-frm=OFF --aria-pagecache-buffer-size=1M)
  start mariadb-install-db "${options[@]}" "${as[@]}" --auth-root-authentication-method=normal --skip-test-db || return 1
  # slurmdbd would create its database and connect again. But libmariadb 11.8.9 (Debian 13) refuses all results of a connection that first
  # failed: it allows them no columns. A database is a directory.
  mkdir "$data/slurm"
  [ "$UID" != 0 ] || chown "$slurm_user" "$data/slurm"
  env -u SLURM_JOB_ID -u SLURM_JOBID setsid mariadbd "${options[@]}" "${as[@]}" --socket="$directory/socket" \
    --skip-networking --skip-grant-tables --skip-log-bin --performance-schema=OFF \
    --innodb-flush-log-at-trx-commit=0 --innodb-fast-shutdown=2 --innodb-lock-wait-timeout=900 --key-buffer-size=1M --max-connections=20 \
    </dev/null >>"$cluster_dir/log/mariadbd.log" 2>&1 9>&- &
  echo $! >"$cluster_dir/run/mariadbd.pid"
  retry 30 test -S "$directory/socket"
}

# Before slurmctld, which asks for the cluster's record.
start_slurmdbd() {
  write_slurmdbd_conf
  MYSQL_UNIX_PORT=$cluster_dir/database/socket start slurmdbd || return 1
  retry 30 sacctmgr -n list cluster || return 1
  retry 10 sacctmgr -i add cluster sailordev
}

# After slurmctld, which has told slurmdbd of the GPUs.
make_accounts() {
  retry 10 sacctmgr -i modify qos normal set priority=100 || return 1
  retry 10 sacctmgr -i add qos low priority=1 preemptmode=requeue gracetime=2 || return 1
  retry 10 sacctmgr -i add qos limited priority=100 preempt=low maxwall=01:00:00 maxjobsperuser=2 maxtresperuser=gres/gpu=6 || return 1
  retry 10 sacctmgr -i modify qos normal set preempt=low || return 1
  retry 10 sacctmgr -i add account physics,biology cluster=sailordev || return 1
  retry 10 sacctmgr -i add user "$user" account=physics,biology defaultaccount=physics qos=normal,limited,low defaultqos=normal || return 1
  # slurmdbd tells slurmctld, which may be late.
  retry 30 known_to_slurmctld
}
known_to_slurmctld() { scontrol -o show assoc_mgr users="$user" flags=assoc | grep -q "Account=biology UserName=$user("; }
