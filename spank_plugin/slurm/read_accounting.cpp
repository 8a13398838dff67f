#include <fmt/format.h>
#include <pwd.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>

#include "planner/process/subprocess.h"
#include "spank_plugin/slurm/accounting.h"
#include "spank_plugin/slurm/releases.h"

namespace sailor {
namespace {

using Of = TresLimit::Of;

struct FreeAnswer {
  void operator()(assoc_mgr_info_msg_t* answer) const { slurm_free_assoc_mgr_info_msg(answer); }
};
using Answer = std::unique_ptr<assoc_mgr_info_msg_t, FreeAnswer>;

std::string text_of(const char* value) {
  return value == nullptr ? "" : value;
}

template <typename Record, typename List, typename Visit>
void for_each(List* list, Visit visit) {
  if (list == nullptr) return;
  auto* iterator = slurm_list_iterator_create(list);
  while (void* item = slurm_list_next(iterator)) visit(*static_cast<Record*>(item));
  slurm_list_iterator_destroy(iterator);
}

// Reads arrays with a number for each TRES of the answer.
class Limits {
 public:
  Limits(const assoc_mgr_info_msg_t& answer, AccountLimits& out) : answer_(answer), out_(out) {}

  // `used` may be nullptr. `unit`: of it in one of the limit's.
  template <typename Used = uint64_t>
  void add(Of of, const uint64_t* most, const Used* used = nullptr, double unit = 1) {
    for (uint32_t i = 0; most != nullptr && i < answer_.tres_cnt; ++i) {
      if (most[i] == INFINITE64 || most[i] == NO_VAL64) continue;
      const double in_use = used == nullptr ? 0 : static_cast<double>(used[i]) / unit;
      out_.tres.push_back(
          {of, answer_.tres_names[i], static_cast<int64_t>(most[i]), static_cast<int64_t>(in_use)});
    }
  }
  void add_jobs(Of of, uint32_t most, uint32_t used) {
    if (most != INFINITE && most != NO_VAL) out_.tres.push_back({of, "job", most, used});
  }
  void set_wall(uint32_t minutes) {
    if (minutes != INFINITE && minutes != NO_VAL) out_.max_wall_s = 60.0 * minutes;
  }
  // Adds to what is used of the minutes.
  void add_running(const uint64_t* run_seconds) {
    for (uint32_t i = 0; run_seconds != nullptr && i < answer_.tres_cnt; ++i)
      for (TresLimit& limit : out_.tres)
        if (limit.of == Of::group_minutes && limit.tres == answer_.tres_names[i])
          limit.used += static_cast<int64_t>(run_seconds[i] / 60);
  }

 private:
  const assoc_mgr_info_msg_t& answer_;
  AccountLimits& out_;
};

// The user's entry; nullptr before the first job.
const slurmdb_used_limits_t* use_of(const slurmdb_qos_usage_t* usage, uid_t user) {
  const slurmdb_used_limits_t* found = nullptr;
  if (usage == nullptr) return found;
  for_each<slurmdb_used_limits_t>(usage->user_limit_list, [&](const slurmdb_used_limits_t& used) {
    if (used.uid == user) found = &used;
  });
  return found;
}

QosRecord read_qos(const slurmdb_qos_rec_t& rec, const assoc_mgr_info_msg_t& answer, uid_t user) {
  constexpr double kSeconds = 60;  // of a minute
  QosRecord qos{.name = text_of(rec.name),
                .before_partition = (rec.flags & QOS_FLAG_OVER_PART_QOS) != 0,
                .ignores_time_limit = (rec.flags & QOS_FLAG_PART_TIME_LIMIT) != 0,
                .ignores_node_limit = (rec.flags & QOS_FLAG_PART_MAX_NODE) != 0};
  Limits limits(answer, qos.limits);
  const slurmdb_qos_usage_t* usage = rec.usage;
  const slurmdb_used_limits_t* of_user = use_of(usage, user);
  limits.add(Of::job, rec.max_tres_pj_ctld);
  limits.add(Of::job_minutes, rec.max_tres_mins_pj_ctld);
  limits.add(Of::user, rec.max_tres_pu_ctld, of_user == nullptr ? nullptr : of_user->tres);
  limits.add_jobs(Of::user, rec.max_jobs_pu, of_user == nullptr ? 0 : of_user->jobs);
  limits.add(Of::group, rec.grp_tres_ctld, usage == nullptr ? nullptr : usage->grp_used_tres);
  limits.add_jobs(Of::group, rec.grp_jobs, usage == nullptr ? 0 : usage->grp_used_jobs);
  limits.add(Of::group_minutes, rec.grp_tres_mins_ctld, usage == nullptr ? nullptr : usage->usage_tres_raw,
             kSeconds);
  if (usage != nullptr) limits.add_running(usage->grp_used_tres_run_secs);
  limits.set_wall(rec.max_wall_pj);
  return qos;
}

AssociationRecord read_association(const slurmdb_assoc_rec_t& rec, const assoc_mgr_info_msg_t& answer,
                                   const std::map<uint32_t, std::string>& qos_names) {
  AssociationRecord association{.id = rec.id,
                                .account = text_of(rec.acct),
                                .user = text_of(rec.user),
                                .partition = text_of(rec.partition),
                                .parent = text_of(rec.parent_acct),
                                .is_default = rec.is_def == 1};
  if (const auto qos = qos_names.find(rec.def_qos_id); qos != qos_names.end())
    association.default_qos = qos->second;
  Limits limits(answer, association.limits);
  limits.add(Of::job, rec.max_tres_ctld);
  limits.add(Of::job_minutes, rec.max_tres_mins_ctld);
  limits.add(Of::group, rec.grp_tres_ctld);
  limits.add(Of::group_minutes, rec.grp_tres_mins_ctld);
  limits.add_jobs(Of::group, rec.grp_jobs, 0);
  if (!association.user.empty()) limits.add_jobs(Of::group, rec.max_jobs, 0);
  limits.set_wall(rec.max_wall_pj);
  return association;
}

// libslurm has it in a structure that its headers do not declare.
void add_association_use(const std::string& user, Accounting& accounting) {
  const auto counts = [](const AssociationRecord& association) {
    return std::any_of(
        association.limits.tres.begin(), association.limits.tres.end(),
        [](const TresLimit& limit) { return limit.of == Of::group || limit.of == Of::group_minutes; });
  };
  if (std::none_of(accounting.associations.begin(), accounting.associations.end(), counts)) return;
  std::map<uint32_t, AssociationUse> uses;
  try {
    uses = parse_association_use(
        run_and_read({"scontrol", "-o", "show", "assoc_mgr", "users=" + user, "flags=assoc"}));
  } catch (const std::runtime_error& error) {
    accounting.note = fmt::format("what accounts use is not known: {}", error.what());
    return;
  }
  for (AssociationRecord& association : accounting.associations)
    for (TresLimit& limit : association.limits.tres) {
      const AssociationUse& use = uses[association.id];
      const auto& of_tres = limit.of == Of::group_minutes ? use.minutes : use.tres;
      if (limit.of != Of::group && limit.of != Of::group_minutes) continue;
      const auto used = of_tres.find(limit.tres);
      if (limit.tres == "job")
        limit.used = use.jobs;
      else if (used != of_tres.end())
        limit.used = used->second;
    }
}

// With PrivateData=usage, ordinary users see only their own associations.
bool lacks_accounts(const Accounting& accounting) {
  return !accounting.associations.empty() &&
         std::none_of(accounting.associations.begin(), accounting.associations.end(),
                      [](const AssociationRecord& record) { return record.user.empty(); });
}

}  // namespace

std::optional<Accounting> read_accounting() {
  if (!limits_are_enforced()) return std::nullopt;
  Accounting accounting;
  const uid_t uid = getuid();
  const passwd* entry = getpwuid(uid);
  if (entry == nullptr) return std::nullopt;
  std::string user = entry->pw_name;
  assoc_mgr_info_request_msg_t request{};
  request.flags = ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS;
  request.user_list = slurm_list_create(nullptr);
  slurm_list_append(request.user_list, user.data());
  assoc_mgr_info_msg_t* raw = nullptr;
  const int code = slurm_load_assoc_mgr_info(&request, &raw);
  const std::string reason = code == SLURM_SUCCESS ? "" : slurm_strerror(errno);
  slurm_list_destroy(request.user_list);
  if (code != SLURM_SUCCESS || raw == nullptr) {
    accounting.note = fmt::format("the limits of accounts and QOS are not known: {}", reason);
    return accounting;
  }
  const Answer answer(raw);
  std::map<uint32_t, std::string> qos_names;
  for_each<slurmdb_qos_rec_t>(answer->qos_list, [&](const slurmdb_qos_rec_t& rec) {
    qos_names[rec.id] = text_of(rec.name);
    accounting.qos.push_back(read_qos(rec, *answer, uid));
  });
  for_each<slurmdb_assoc_rec_t>(answer->assoc_list, [&](const slurmdb_assoc_rec_t& rec) {
    accounting.associations.push_back(read_association(rec, *answer, qos_names));
  });
  if (lacks_accounts(accounting))
    accounting.note = "group limits of accounts are not known: PrivateData=usage hides them";
  add_association_use(user, accounting);
  return accounting;
}

}  // namespace sailor
