#include "spank_plugin/slurm/leaf_switches.h"

#include <exception>
#include <sstream>

#include "planner/process/subprocess.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {
namespace {

void note_leaf(const std::string& name, const std::string& nodes,
               std::map<std::string, std::string>& switches) {
  for (const std::string& node : expand_hosts(nodes)) {
    std::string& leaf = switches[node];
    if (leaf.empty() || name < leaf) leaf = name;
  }
}

}  // namespace

std::map<std::string, std::string> parse_leaf_switches(const std::string& text) {
  std::map<std::string, std::string> switches;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::map<std::string, std::string> fields;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      if (equals != std::string::npos) fields[word.substr(0, equals)] = word.substr(equals + 1);
    }
    if (fields["Level"] == "0" && !fields["SwitchName"].empty())
      note_leaf(fields["SwitchName"], fields["Nodes"], switches);
  }
  return switches;
}

std::map<std::string, std::string> read_leaf_switches() {
  try {
    return parse_leaf_switches(
        run_and_read({"timeout", "10", "sh", "-c", "exec scontrol show topology 2>/dev/null"}));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace sailor
