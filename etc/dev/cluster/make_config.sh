#!/bin/bash
# make_config.sh: writes the Slurm and Sailor configuration of a throw-away cluster. Called by up.sh with the settings in the
# environment: cluster_dir, node_count, base_port, slurm_user, slurmd_user, umbrella (yes or no), switches (0 = no topology), plugin (path, may be
# empty), address (of the nodes and slurmctld), apart (a node with another one, may be empty) and apart_address, strict and accounts (yes or no), dbd_port.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/common.sh"
host=$(hostname -s 2>/dev/null || hostname)

# Kinds of nodes: partition, prefix of node names, GRES type, GPUs per node. Nodes are assigned to them in turn.
partitions=(fast medium small)
prefixes=(a v t)
types=(a100 v100 t4)
gpus=(4 4 2)

width=1
[ $(((node_count + 2) / 3)) -gt 9 ] && width=2
[ $(((node_count + 2) / 3)) -gt 99 ] && width=3
: >"$cluster_dir/etc/nodes.txt"
for kind in 0 1 2; do
  for ((i = 1; i <= (node_count + 2 - kind) / 3; i++)); do
    printf "%s%0${width}d %s %s %d\n" "${prefixes[kind]}" "$i" "${partitions[kind]}" "${types[kind]}" "${gpus[kind]}"
  done
done >>"$cluster_dir/etc/nodes.txt"

# GPU device files: real device nodes where that is permitted, else plain files (Slurm only needs them to exist).
make_device() {
  rm -f "$1"
  mknod -m 666 "$1" c 195 "$2" 2>/dev/null || { rm -f "$1"; : >"$1"; }
}

# The GPUs of a node as "TYPE COUNT" lines. With --strict, the first node of two kinds has two types: GPUs and MIG slices, GPUs of two models.
gpus_of_node() { # NAME TYPE COUNT
  case $strict$1 in
    yesa1) printf '%s\n' "a100 2" "a100_1g.10gb 4" ;;
    yesv1) printf '%s\n' "v100 2" "t4 2" ;;
    *) echo "$2 $3" ;;
  esac
}

port=$base_port
: >"$cluster_dir/etc/gres.conf"
: >"$cluster_dir/etc/nodes.conf"
while read -r name partition type count; do
  port=$((port + 1))
  mkdir -p "$cluster_dir/spool/$name" "$cluster_dir/tmp/$name" "$cluster_dir/dev/$name"
  chmod 1777 "$cluster_dir/tmp/$name"
  first=0 gres=
  while read -r of_type gpus_of_type; do
    for ((i = first; i < first + gpus_of_type; i++)); do make_device "$cluster_dir/dev/$name/gpu$i" "$i"; done
    echo "NodeName=$name Name=gpu Type=$of_type File=$cluster_dir/dev/$name/gpu[$first-$((first + gpus_of_type - 1))]" >>"$cluster_dir/etc/gres.conf"
    gres+=${gres:+,}gpu:$of_type:$gpus_of_type
    first=$((first + gpus_of_type))
  done < <(gpus_of_node "$name" "$type" "$count")
  # CPUs and memory are far more than the machine has: whether jobs fit is decided by GPUs alone.
  node_address=$address
  [ "$name" != "$apart" ] || node_address=$apart_address
  echo "NodeName=$name NodeHostname=$host NodeAddr=$node_address Port=$port CPUs=64 Boards=1 SocketsPerBoard=1" \
    "CoresPerSocket=64 ThreadsPerCore=1 RealMemory=64000 Gres=$gres State=UNKNOWN" >>"$cluster_dir/etc/nodes.conf"
done <"$cluster_dir/etc/nodes.txt"

# With --strict, jobs have the devices and the memory that they asked for, and without a request hardly any memory.
process_tracking=linuxproc task_plugin=none default_memory=100
if [ "$strict" = yes ]; then process_tracking=cgroup task_plugin=cgroup default_memory=1; fi

# With --accounts, slurmdbd has the associations and QOS, and their limits are enforced.
accounting='AccountingStorageType=accounting_storage/none'
if [ "$accounts" = yes ]; then
  accounting="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$dbd_port
AccountingStoragePass=$cluster_dir/munge/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu$(awk '{ if (!seen[$3]++) printf ",gres/gpu:%s", $3 }' "$cluster_dir/etc/nodes.txt")
PriorityType=priority/multifactor
PriorityWeightAge=100
PriorityWeightFairshare=1000
PriorityWeightQOS=10000
PreemptType=preempt/qos
PreemptMode=REQUEUE"
fi

nodes_of() { awk -v p="$1" '$2 == p {print $1}' "$cluster_dir/etc/nodes.txt" | paste -sd,; }

cat >"$cluster_dir/etc/slurm.conf" <<CONF
ClusterName=sailordev
SlurmctldHost=$host($address)
SlurmctldPort=$base_port
SlurmUser=$slurm_user
SlurmdUser=$slurmd_user
AuthType=auth/munge
AuthInfo=socket=$cluster_dir/munge/munge.socket
CredType=cred/munge
StateSaveLocation=$cluster_dir/state
SlurmdSpoolDir=$cluster_dir/spool/%n
SlurmctldPidFile=$cluster_dir/run/slurmctld.pid
SlurmdPidFile=$cluster_dir/run/slurmd.%n.pid
SlurmctldLogFile=$cluster_dir/log/slurmctld.log
SlurmdLogFile=$cluster_dir/log/slurmd.%n.log
SlurmctldDebug=info
SlurmdDebug=info
ProctrackType=proctrack/$process_tracking
TaskPlugin=task/$task_plugin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=0,sched_interval=2,bf_continue
GresTypes=gpu
$accounting
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$cluster_dir/log/jobs.log
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
KillWait=30
MinJobAge=300
Waittime=0
DefMemPerCPU=$default_memory
TmpFS=$cluster_dir/tmp/%n
PlugStackConfig=$cluster_dir/etc/plugstack.conf
include $cluster_dir/etc/nodes.conf
CONF
first=yes
for partition in "${partitions[@]}"; do
  nodes=$(nodes_of "$partition")
  [ -n "$nodes" ] || continue
  default=NO; [ $first = yes ] && default=YES; first=no
  echo "PartitionName=$partition Nodes=$nodes Default=$default MaxTime=12:00:00 State=UP" >>"$cluster_dir/etc/slurm.conf"
done
if [ "$umbrella" = yes ]; then
  echo "PartitionName=all Nodes=ALL MaxTime=12:00:00 State=UP" >>"$cluster_dir/etc/slurm.conf"
fi

# The network, when it has switches: leaves below one spine.
rm -f "$cluster_dir/etc/topology.conf"
if [ "$switches" -gt 0 ]; then
  echo "TopologyPlugin=topology/tree" >>"$cluster_dir/etc/slurm.conf"
  awk -v switches="$switches" '
    { leaf = place[$2]++ % switches + 1; nodes[leaf] = nodes[leaf] (nodes[leaf] == "" ? "" : ",") $1 }
    END {
      for (i = 1; i <= switches; i++) if (nodes[i] != "") { print "SwitchName=s" i " Nodes=" nodes[i]; last = i }
      print "SwitchName=spine Switches=s[1-" last "]"
    }' "$cluster_dir/etc/nodes.txt" >"$cluster_dir/etc/topology.conf"
fi

# Without --strict, control groups are not used here, but later releases refuse to start where both of their versions are mounted. 22.05
# does not know how to do without, and does not ask.
case $strict/$(slurmd -V) in
  yes/*) printf '%s\n' ConstrainDevices=yes ConstrainRAMSpace=yes >"$cluster_dir/etc/cgroup.conf" ;;
  *' 22.'*) ;;
  *) echo "CgroupPlugin=disabled" >"$cluster_dir/etc/cgroup.conf" ;;
esac

# A fresh include directory, as /etc/slurm/plugstack.conf.d on a real cluster.
mkdir -p "$cluster_dir/etc/plugstack.conf.d"
echo "include $cluster_dir/etc/plugstack.conf.d/*.conf" >"$cluster_dir/etc/plugstack.conf"
: >"$cluster_dir/etc/plugstack.conf.d/empty.conf" # an include that matches nothing is an error to Slurm
rm -f "$cluster_dir/etc/plugstack.conf.d/sailor.conf"
if [ -n "$plugin" ]; then
  echo "optional $plugin config=$cluster_dir/etc/sailor.yaml" >"$cluster_dir/etc/plugstack.conf.d/sailor.conf"
fi

# The site's side: the dev catalog as it is, the site config with this cluster's umbrella, the dev network profile.
cp "$repository/etc/dev/catalog.yaml" "$cluster_dir/etc/catalog.yaml"
cp "$repository/etc/dev/sailor.yaml" "$cluster_dir/etc/sailor.yaml"
[ "$umbrella" = yes ] && echo "umbrella_partition: all" >>"$cluster_dir/etc/sailor.yaml"
if [ "$strict" = yes ]; then # a type for the MIG slices
  sed -i 's/^gres: {/&a100_1g.10gb: A100-1g.10, /' "$cluster_dir/etc/sailor.yaml"
  echo "  A100-1g.10: {memory: 1GiB, emulate: {profile: cpu, slowdown: 150}, usd_per_hour: 0.52, watts: {idle: 8, busy: 60}}" \
    >>"$cluster_dir/etc/catalog.yaml"
fi
cp "$repository/etc/dev/network.json" "$cluster_dir/profiles/network.json"
