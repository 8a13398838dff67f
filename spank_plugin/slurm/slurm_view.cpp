#include "spank_plugin/slurm/slurm_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <stdexcept>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/allocation.h"
#include "spank_plugin/slurm/commands/command_lines.h"
#include "spank_plugin/slurm/commands/tres.h"
#include "spank_plugin/slurm/leaf_switches.h"
#include "spank_plugin/slurm/queue_starts.h"
#include "spank_plugin/slurm/releases.h"

namespace sailor {
namespace {

template <auto release>
struct Releaser {
  template <typename T>
  void operator()(T* value) const {
    release(value);
  }
};
using NodeMessage = std::unique_ptr<node_info_msg_t, Releaser<slurm_free_node_info_msg>>;
using JobMessage = std::unique_ptr<job_info_msg_t, Releaser<slurm_free_job_info_msg>>;
using PartitionMessage = std::unique_ptr<partition_info_msg_t, Releaser<slurm_free_partition_info_msg>>;
using ReservationMessage = std::unique_ptr<reserve_info_msg_t, Releaser<slurm_free_reservation_info_msg>>;

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(fmt::format("cannot read {} from slurmctld: {}", what, slurm_strerror(errno)));
}

std::string text(const char* value) {
  return value == nullptr ? "" : value;
}

std::optional<double> minutes(uint32_t value) {
  if (value == INFINITE || value == NO_VAL) return std::nullopt;
  return 60.0 * value;
}

SlurmNode read_node(const node_info_t& info) {
  SlurmNode node;
  node.name = info.name;
  node.state = info.node_state;
  node.gres = text(info.gres);
  node.gres_used = text(info.gres_used);
  node.features = split_commas(text(info.features_act != nullptr ? info.features_act : info.features));
  node.allocated_cpus = allocated_cpus(info);
  node.cpus = info.cpus_efctv > 0 ? info.cpus_efctv : info.cpus;
  node.memory_mb = static_cast<int64_t>(info.real_memory - std::min(info.real_memory, info.mem_spec_limit));
  node.allocated_memory_mb = static_cast<int64_t>(allocated_memory_mb(info));
  node.of_another_user = info.owner != NO_VAL && info.owner != getuid();
  return node;
}

// When the jobs on one node end, as far as Slurm shows them.
struct JobsOnNode {
  int64_t last_end = 0;
  bool open_end = false;  // one of them has no time limit, or is suspended
};

void note_ends(const slurm_job_info_t& job, std::map<std::string, JobsOnNode>& jobs) {
  const uint32_t base = job.job_state & JOB_STATE_BASE;
  const bool holds_nodes =
      base == JOB_RUNNING || base == JOB_SUSPENDED || (job.job_state & JOB_COMPLETING) != 0;
  if (!holds_nodes) return;
  const bool open_end = base == JOB_SUSPENDED || (base == JOB_RUNNING && job.time_limit == INFINITE);
  for (const std::string& node : expand_hosts(text(job.nodes))) {
    JobsOnNode& here = jobs[node];
    here.last_end = std::max<int64_t>(here.last_end, job.end_time);
    here.open_end = here.open_end || open_end;
  }
}

WaitReason wait_reason(const slurm_job_info_t& job) {
  if (job.state_reason == WAIT_RESOURCES || job.state_reason == WAIT_PRIORITY) return WaitReason::nodes;
  return job.state_reason == WAIT_NO_REASON ? WaitReason::none_yet : WaitReason::other;
}

NodeNeeds read_needs(const slurm_job_info_t& job, int nodes) {
  NodeNeeds needs;
  needs.whole = job.shared == 0;
  needs.gpus = gpus_of_request(text(job.tres_per_node), text(job.tres_req_str), nodes);
  const auto per_node = (static_cast<int>(job.num_cpus) + nodes - 1) / nodes;
  needs.cpus = std::max<int>({1, job.pn_min_cpus, per_node});
  needs.memory_mb = static_cast<int64_t>(job.pn_min_memory & ~MEM_PER_CPU);
  if ((job.pn_min_memory & MEM_PER_CPU) != 0) needs.memory_mb *= needs.cpus;
  return needs;
}

// What a running helper job holds of its node. Needs SHOW_DETAIL.
JobShare read_share(const slurm_job_info_t& job) {
  const std::string gres = job.gres_detail_cnt > 0 ? text(job.gres_detail_str[0]) : "";
  return {static_cast<int>(job.num_cpus), memory_mb_in(text(job.tres_alloc_str)), gres};
}

SlurmWaitingJob read_waiting(const slurm_job_info_t& job) {
  SlurmWaitingJob waiting;
  waiting.job = job.het_job_id != 0 ? job.het_job_id : job_number(job);
  waiting.job_name = text(job.name);
  waiting.reason = wait_reason(job);
  waiting.features = text(job.features);
  waiting.required = expand_hosts(text(job.req_nodes));
  waiting.excluded = expand_hosts(text(job.exc_nodes));
  waiting.in_reservation = !text(job.resv_name).empty();
  waiting.priority = job.priority;
  waiting.nodes = static_cast<int>(std::max<uint32_t>(1, job.num_nodes));
  waiting.needs = read_needs(job, waiting.nodes);
  waiting.partitions = split_commas(text(job.partition));
  if (!waiting.partitions.empty()) waiting.partition = waiting.partitions.front();
  waiting.limit_s = minutes(job.time_limit);
  const bool expected = job.start_time > 0 && job.sched_nodes != nullptr;
  waiting.names = expected ? expand_hosts(text(job.sched_nodes)) : waiting.required;
  if (job.start_time > 0) waiting.start = job.start_time;
  return waiting;
}

// What the jobs of all users say about nodes: when those that run will end, and which are waited for: planned
// jobs ask for their nodes by name, and until they start these are idle and yet not free.
void read_jobs(SlurmView& view, const std::string& helpers_of) {
  job_info_msg_t* raw_jobs = nullptr;
  const auto flags = static_cast<uint16_t>(helpers_of.empty() ? SHOW_LOCAL : SHOW_LOCAL | SHOW_DETAIL);
  if (slurm_load_jobs(0, &raw_jobs, flags) != SLURM_SUCCESS) fail("jobs");
  JobMessage jobs(raw_jobs);
  const std::string helper_name = helpers_of.empty() ? "" : helper_job_name(helpers_of);
  std::map<std::string, uint32_t> promised;
  std::map<std::string, JobsOnNode> running;
  for (uint32_t i = 0; i < jobs->record_count; ++i) {
    const slurm_job_info_t& job = jobs->job_array[i];
    note_ends(job, running);
    const bool runs = (job.job_state & JOB_STATE_BASE) == JOB_RUNNING;
    if (runs && !helper_name.empty() && job.user_id == getuid() && helper_name == text(job.name))
      view.helper_shares[text(job.nodes)] = read_share(job);
    bool waits = (job.job_state & JOB_STATE_BASE) == JOB_PENDING && job.priority != 0 &&
                 job.eligible_time != 0 && job.eligible_time <= time(nullptr);
    if (!waits) continue;
    view.queue.push_back(read_waiting(job));
    for (const std::string& node : expand_hosts(text(job.req_nodes))) promised.emplace(node, job_number(job));
  }
  for (SlurmNode& node : view.nodes) {
    auto it = promised.find(node.name);
    if (it != promised.end()) node.promised_to = it->second;
    auto jobs_here = running.find(node.name);
    if (jobs_here != running.end() && !jobs_here->second.open_end) node.jobs_end = jobs_here->second.last_end;
  }
}

// Of `default_memory`, in Slurm's form: the memory of jobs that ask for none.
void set_memory(uint64_t default_memory, SlurmPartition& partition) {
  const auto mb = static_cast<int64_t>(default_memory & ~MEM_PER_CPU);
  ((default_memory & MEM_PER_CPU) != 0 ? partition.memory_per_cpu_mb : partition.memory_per_node_mb) = mb;
}

SlurmPartition read_partition(const partition_info_t& info) {
  SlurmPartition partition;
  partition.name = text(info.name);
  partition.up = info.state_up == PARTITION_UP;
  partition.is_default = (info.flags & PART_FLAG_DEFAULT) != 0;
  partition.whole_nodes = info.max_share == 0;
  partition.root_only = (info.flags & PART_FLAG_ROOT_ONLY) != 0;
  partition.needs_reservation = (info.flags & PART_FLAG_REQ_RESV) != 0;
  partition.allowed_accounts = split_commas(text(info.allow_accounts));
  partition.denied_accounts = split_commas(text(info.deny_accounts));
  partition.allowed_qos = split_commas(text(info.allow_qos));
  partition.denied_qos = split_commas(text(info.deny_qos));
  if (info.max_nodes != INFINITE && info.max_nodes != NO_VAL)
    partition.max_nodes = static_cast<int>(info.max_nodes);
  partition.max_time_s = minutes(info.max_time);
  partition.default_time_s = minutes(info.default_time);
  partition.nodes = expand_hosts(text(info.nodes));
  partition.qos = text(info.qos_char);
  partition.billing_weights = text(info.billing_weights_str);
  set_memory(info.def_mem_per_cpu, partition);
  return partition;
}

// No SHOW_ALL: the controller omits partitions that are hidden or closed to the user's groups.
std::vector<SlurmPartition> read_partitions() {
  partition_info_msg_t* raw_partitions = nullptr;
  if (slurm_load_partitions(0, &raw_partitions, SHOW_LOCAL) != SLURM_SUCCESS) fail("partitions");
  const PartitionMessage message(raw_partitions);
  std::vector<SlurmPartition> partitions;
  for (uint32_t i = 0; i < message->record_count; ++i)
    partitions.push_back(read_partition(message->partition_array[i]));
  return partitions;
}

std::vector<SlurmReservation> read_reservations() {
  reserve_info_msg_t* raw_reservations = nullptr;
  if (slurm_load_reservations(0, &raw_reservations) != SLURM_SUCCESS) fail("reservations");
  const ReservationMessage message(raw_reservations);
  std::vector<SlurmReservation> reservations;
  for (uint32_t i = 0; i < message->record_count; ++i) {
    const reserve_info_t& info = message->reservation_array[i];
    reservations.push_back({text(info.name), info.start_time, info.end_time,
                            expand_hosts(text(info.node_list)), text(info.partition)});
  }
  return reservations;
}

// What partitions leave to slurm.conf, and how finely backfill plans.
void add_settings(SlurmView& view) {
  const slurm_conf_t* conf = settings();
  if (conf == nullptr) return;
  view.largest_weight_counts = (conf->priority_flags & PRIORITY_FLAGS_MAX_TRES) != 0;
  view.backfill_resolution_s = backfill_resolution_s(text(conf->sched_params));
  for (SlurmPartition& partition : view.partitions)
    if (partition.memory_per_cpu_mb == 0 && partition.memory_per_node_mb == 0)
      set_memory(conf->def_mem_per_cpu, partition);
}

ClusterSetup setup_with(std::vector<SlurmPartition> partitions) {
  return {std::move(partitions), read_reservations(), read_leaf_switches()};
}

SlurmView complete(SlurmView view, const ClusterSetup& setup) {
  view.partitions = setup.partitions;
  // The RES flag of a node comes seconds late and says nothing of reservations to come.
  view.reservations = setup.reservations;
  for (SlurmNode& node : view.nodes) {
    if (auto it = setup.leaf_switches.find(node.name); it != setup.leaf_switches.end())
      node.leaf_switch = it->second;
  }
  add_settings(view);
  view.accounting = read_accounting();
  return view;
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& hosts) {
  std::vector<std::string> names;
  if (hosts.empty()) return names;
  const HostList list = slurm_hostlist_create(hosts.c_str());
  if (list == nullptr) return names;
  while (char* host = slurm_hostlist_shift(list)) {
    names.emplace_back(host);
    free(host);  // NOLINT: allocated by libslurm with malloc
  }
  slurm_hostlist_destroy(list);
  return names;
}

std::string compress_hosts(std::vector<std::string> names) {
  std::sort(names.begin(), names.end(), host_less);  // else b2,b3,b1 becomes b[2-3,1]
  const HostList list = slurm_hostlist_create(nullptr);
  if (list == nullptr) return fmt::format("{}", fmt::join(names, ","));
  for (const std::string& name : names) slurm_hostlist_push_host(list, name.c_str());
  std::string ranged = ranged_string(list);
  slurm_hostlist_destroy(list);
  return ranged;
}

std::vector<SlurmNode> read_nodes() {
  std::vector<SlurmNode> result;
  node_info_msg_t* raw_nodes = nullptr;
  if (slurm_load_node(0, &raw_nodes, SHOW_DETAIL | SHOW_LOCAL) != SLURM_SUCCESS) fail("nodes");
  NodeMessage nodes(raw_nodes);
  for (uint32_t i = 0; i < nodes->record_count; ++i) {
    // Powered-down cloud nodes that this user may not see have no name.
    if (nodes->node_array[i].name != nullptr) result.push_back(read_node(nodes->node_array[i]));
  }
  return result;
}

void initialise_slurm() {
  slurm_init(nullptr);
}

SlurmView read_slurm() {
  return read_slurm(read_setup());
}

SlurmView read_slurm(const ClusterSetup& setup) {
  return complete(read_queue(read_nodes()), setup);
}

ClusterSetup read_setup() {
  return setup_with(read_partitions());
}

SlurmView read_queue(std::vector<SlurmNode> nodes, const std::string& helpers_of) {
  SlurmView view;
  view.now = time(nullptr);
  view.nodes = std::move(nodes);
  read_jobs(view, helpers_of);
  std::stable_sort(
      view.queue.begin(), view.queue.end(),
      [](const SlurmWaitingJob& a, const SlurmWaitingJob& b) { return a.priority > b.priority; });
  const bool nobody_waits =
      std::none_of(view.queue.begin(), view.queue.end(),
                   [](const SlurmWaitingJob& job) { return job.reason == WaitReason::nodes; });
  if (!helpers_of.empty() && !nobody_waits) view.partitions = read_partitions();
  return view;
}

SlurmView read_slurm(SlurmView view) {
  const ClusterSetup setup = view.partitions.empty() ? read_setup() : setup_with(std::move(view.partitions));
  return complete(std::move(view), setup);
}

}  // namespace sailor
