#include "trainer/elastic/allocation.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "trainer/elastic/scontrol_line.h"
#include "trainer/elastic/subprocess.h"

namespace sailor {
namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

void add_component(Allocation& allocation, int het_group, const std::string& suffix) {
  std::string list = variable("SLURM_JOB_NODELIST" + suffix);
  if (list.empty()) list = variable("SLURM_NODELIST" + suffix);
  if (list.empty())
    throw std::runtime_error(
        fmt::format("SLURM_JOB_NODELIST{} is not set: this is not inside a Slurm allocation", suffix));
  std::vector<int> cpus = parse_cpus_per_node(variable("SLURM_JOB_CPUS_PER_NODE" + suffix));
  std::istringstream names(run_and_read({"scontrol", "show", "hostnames", list}));
  size_t index = 0;
  for (std::string name; std::getline(names, name); ++index)
    allocation.nodes.push_back({name, het_group, index < cpus.size() ? cpus[index] : 0});
}

// Nothing when the job has no time limit, or Slurm does not say.
std::optional<int64_t> job_end(const std::string& job_id) {
  if (const std::string end = variable("SLURM_JOB_END_TIME"); !end.empty()) return std::atoll(end.c_str());
  try {
    return time_in_scontrol(run_and_read({"timeout", "10", "scontrol", "show", "job", "-o", job_id}),
                            "EndTime");
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace

const AllocatedNode* Allocation::find(const std::string& node) const {
  for (const AllocatedNode& candidate : nodes) {
    if (candidate.name == node) return &candidate;
  }
  return nullptr;
}

Allocation allocation_from_environment() {
  Allocation allocation;
  allocation.job_id = variable("SLURM_JOB_ID");
  if (allocation.job_id.empty())
    throw std::runtime_error(
        "SLURM_JOB_ID is not set: submit the job with sbatch, or train on this machine with `sailor run "
        "--local`");
  const std::string components = variable("SLURM_HET_SIZE");
  if (components.empty()) {
    add_component(allocation, -1, "");
  } else {
    for (int i = 0; i < std::atoi(components.c_str()); ++i)
      add_component(allocation, i, fmt::format("_HET_GROUP_{}", i));
  }
  allocation.end_s = job_end(allocation.job_id);
  return allocation;
}

std::vector<int> parse_cpus_per_node(const std::string& text) {
  std::vector<int> result;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    char* end = nullptr;
    const long cpus = std::strtol(part.c_str(), &end, 10);
    long times = 1;
    if (*end == '(' && end[1] == 'x') times = std::strtol(end + 2, &end, 10);
    if (cpus < 1 || times < 1 || times > 1000000)
      throw std::runtime_error(fmt::format("cannot read processors per node: \"{}\"", text));
    result.insert(result.end(), static_cast<size_t>(times), static_cast<int>(cpus));
  }
  return result;
}

std::string to_text(const std::vector<AllocatedNode>& nodes) {
  std::string text;
  for (const AllocatedNode& node : nodes)
    text += fmt::format("{}{}:{}:{}", text.empty() ? "" : ",", node.name, node.het_group, node.cpus);
  return text;
}

std::vector<AllocatedNode> parse_allocated_nodes(const std::string& text) {
  std::vector<AllocatedNode> nodes;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t last = part.rfind(':');
    const size_t first =
        last == std::string::npos || last == 0 ? std::string::npos : part.rfind(':', last - 1);
    if (first == std::string::npos || first == 0)
      throw std::runtime_error(fmt::format("cannot read node \"{}\": expected NAME:HETGROUP:CPUS", part));
    nodes.push_back(
        {part.substr(0, first), std::atoi(part.c_str() + first + 1), std::atoi(part.c_str() + last + 1)});
  }
  return nodes;
}

}  // namespace sailor
