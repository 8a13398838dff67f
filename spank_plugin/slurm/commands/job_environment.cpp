#include "spank_plugin/slurm/commands/job_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

extern "C" char** environ;

namespace sailor {
namespace {

constexpr const char* kStepDefaults[] = {"SLURM_CPU_BIND",
                                         "SLURM_CPUS_PER_GPU",
                                         "SLURM_CPUS_PER_TASK",
                                         "SLURM_DISTRIBUTION",
                                         "SLURM_EXACT",
                                         "SLURM_EXCLUSIVE",
                                         "SLURM_EXPORT_ENV",
                                         "SLURM_GPU_BIND",
                                         "SLURM_GPUS",
                                         "SLURM_GPUS_PER_NODE",
                                         "SLURM_GPUS_PER_SOCKET",
                                         "SLURM_GPUS_PER_TASK",
                                         "SLURM_HINT",
                                         "SLURM_KILL_BAD_EXIT",
                                         "SLURM_MEM_BIND",
                                         "SLURM_MEM_PER_CPU",
                                         "SLURM_MEM_PER_GPU",
                                         "SLURM_MEM_PER_NODE",
                                         "SLURM_MPI_TYPE",
                                         "SLURM_NPROCS",
                                         "SLURM_NTASKS",
                                         "SLURM_NTASKS_PER_CORE",
                                         "SLURM_NTASKS_PER_GPU",
                                         "SLURM_NTASKS_PER_NODE",
                                         "SLURM_NTASKS_PER_SOCKET",
                                         "SLURM_THREADS_PER_CORE",
                                         "SLURM_TRES_BIND",
                                         "SLURM_TRES_PER_TASK",
                                         "SLURM_WHOLE"};

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void unset_variables_with(std::initializer_list<std::string_view> prefixes,
                          std::initializer_list<std::string_view> except) {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto starts_with_one_of = [&](std::initializer_list<std::string_view> of) {
      return std::any_of(of.begin(), of.end(),
                         [&](std::string_view prefix) { return text.starts_with(prefix); });
    };
    if (starts_with_one_of(prefixes) && !starts_with_one_of(except))
      names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void add_component(std::vector<AllocatedNode>& nodes, int het_group, const std::string& suffix,
                   std::vector<std::string> (*expand)(const std::string& hosts)) {
  std::string list = variable("SLURM_JOB_NODELIST" + suffix);
  if (list.empty()) list = variable("SLURM_NODELIST" + suffix);
  if (list.empty())
    throw std::runtime_error(
        fmt::format("SLURM_JOB_NODELIST{} is not set: this is not inside a Slurm allocation", suffix));
  const std::vector<int> cpus = parse_cpus_per_node(variable("SLURM_JOB_CPUS_PER_NODE" + suffix));
  size_t index = 0;
  for (const std::string& name : expand(list)) {
    nodes.push_back({name, het_group, index < cpus.size() ? cpus[index] : 0});
    ++index;
  }
}

}  // namespace

std::string slurm_job_id() {
  return variable("SLURM_JOB_ID");
}

std::string slurm_job_name() {
  return variable("SLURM_JOB_NAME");
}

std::optional<OwnJob> slurm_own_job() {
  const std::string id = slurm_job_id();
  if (id.empty()) return std::nullopt;
  return OwnJob{.id = id,
                .restarts = std::atoi(variable("SLURM_RESTART_COUNT").c_str()),
                .submit_directory = variable("SLURM_SUBMIT_DIR"),
                .account = variable("SLURM_JOB_ACCOUNT"),
                .qos = variable("SLURM_JOB_QOS"),
                .reservation = variable("SLURM_JOB_RESERVATION")};
}

std::string slurm_own_node() {
  return variable("SLURMD_NODENAME");
}

std::optional<int> slurm_own_task() {
  // A batch script has a number too, but is no step.
  const std::optional<double> task = parse_number(variable("SLURM_LOCALID"));
  if (!task || variable("SLURM_STEP_ID").empty()) return std::nullopt;
  return static_cast<int>(*task);
}

std::map<std::string, std::string> sbatch_defaults() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("SBATCH_") && equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

std::optional<std::string> job_variable(const std::string& name) {
  const char* value = std::getenv(("SLURM_SPANK_" + name).c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

void set_job_variable(const std::string& name, const std::string& value) {
  setenv(("SLURM_SPANK_" + name).c_str(), value.c_str(), 1);
}

void forget_job_variable(const std::string& name) {
  unsetenv(("SLURM_SPANK_" + name).c_str());
}

std::vector<AllocatedNode> nodes_of_job(std::vector<std::string> (*expand)(const std::string& hosts)) {
  if (slurm_job_id().empty())
    throw std::runtime_error(
        "SLURM_JOB_ID is not set: submit the job with sbatch, or train on this machine with `sailor run "
        "--local`");
  std::vector<AllocatedNode> nodes;
  const std::string components = variable("SLURM_HET_SIZE");
  if (components.empty()) {
    add_component(nodes, -1, "", expand);
  } else {
    for (int i = 0; i < std::atoi(components.c_str()); ++i)
      add_component(nodes, i, fmt::format("_HET_GROUP_{}", i), expand);
  }
  return nodes;
}

std::optional<int64_t> job_end_in_environment() {
  const std::string end = variable("SLURM_JOB_END_TIME");
  if (end.empty()) return std::nullopt;
  return std::atoll(end.c_str());
}

std::vector<int> parse_cpus_per_node(const std::string& text) {
  constexpr long kMost = 1'000'000;
  std::vector<int> result;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const long cpus = std::strtol(part.c_str(), &end, 10);
    long times = 1;
    if (*end == '(' && end[1] == 'x') times = std::strtol(end + 2, &end, 10);
    if (cpus < 1 || cpus > kMost || times < 1 || times > kMost)
      throw std::runtime_error(fmt::format("cannot read processors per node: {}", in_quotes(text)));
    result.insert(result.end(), static_cast<size_t>(times), static_cast<int>(cpus));
  }
  return result;
}

void forget_srun_defaults() {
  for (const std::string name : kStepDefaults) {
    unsetenv(name.c_str());
    // srun --het-group=N reads those of the component, which have two names.
    unset_variables_with({name + "_HET_GROUP_", name + "_PACK_GROUP_"}, {});
  }
}

void forget_slurm_job() {
  unset_variables_with({"SLURM_", "SBATCH_", "SALLOC_", "SRUN_"},
                       {"SLURM_CONF", "SLURM_SPANK__SLURM_SPANK_OPTION_"});
}

}  // namespace sailor
