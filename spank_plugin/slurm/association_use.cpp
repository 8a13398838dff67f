#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "planner/spec/name_list.h"
#include "spank_plugin/slurm/accounting.h"

namespace sailor {
namespace {

// The value of `KEY=` in a line of words; empty if there is none.
std::string value_of(const std::string& line, const std::string& key) {
  const std::string start = " " + key + "=";
  const size_t at = line.find(start);
  if (at == std::string::npos) return "";
  const size_t begin = at + start.size();
  return line.substr(begin, line.find(' ', begin) - begin);
}

// Of `6(4)` or `N(4)`.
int64_t used_of(const std::string& limit) {
  const size_t open = limit.find('(');
  constexpr long long kMost = int64_t{1} << 50;  // so that sums fit
  return open == std::string::npos
             ? 0
             : std::clamp(std::strtoll(limit.c_str() + open + 1, nullptr, 10), 0LL, kMost);
}

// Adds those of `cpu=N(2),gres/gpu=6(4)`.
void add_used(const std::string& limits, std::map<std::string, int64_t>& used) {
  for (const std::string& limit : split_commas(limits)) {
    const size_t equals = limit.find('=');
    if (equals != std::string::npos) used[limit.substr(0, equals)] += used_of(limit.substr(equals + 1));
  }
}

}  // namespace

std::map<uint32_t, AssociationUse> parse_association_use(const std::string& text) {
  std::map<uint32_t, AssociationUse> uses;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string id = value_of(line, "ID");
    if (line.rfind("ClusterName=", 0) != 0 || id.empty()) continue;
    AssociationUse& use = uses[static_cast<uint32_t>(std::strtoul(id.c_str(), nullptr, 10))];
    use.jobs = used_of(value_of(line, "GrpJobs"));
    add_used(value_of(line, "GrpTRES"), use.tres);
    add_used(value_of(line, "GrpTRESMins"), use.minutes);
    add_used(value_of(line, "GrpTRESRunMins"), use.minutes);
  }
  return uses;
}

}  // namespace sailor
