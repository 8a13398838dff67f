#include "spank_plugin/slurm/leaf_switches.h"

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <sstream>

#include "planner/process/subprocess.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

void note_leaf(const std::string& name, const std::string& nodes,
               std::map<std::string, std::string>& switches) {
  for (const std::string& node : expand_hosts(nodes)) {
    std::string& leaf = switches[node];
    if (leaf.empty() || name < leaf) leaf = name;
  }
}

// Of slurm.conf, as Slurm's commands find it.
fs::path configuration_directory() {
  if (const char* file = std::getenv("SLURM_CONF")) return fs::path(file).parent_path();
  const fs::path of_packages = "/etc/slurm";
  return fs::exists(of_packages / "slurm.conf") ? of_packages : "/run/slurm/conf";
}

}  // namespace

bool has_no_topology(const std::string& directory) {
  std::error_code unknown;
  const fs::path in = directory;
  // A command of a configless cluster has a file in memory instead.
  return fs::is_regular_file(in / "slurm.conf", unknown) && !directory.starts_with("/proc") &&
         !directory.starts_with("/dev") && !fs::exists(in / "topology.conf", unknown) &&
         !fs::exists(in / "topology.yaml", unknown);
}

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
    if (has_no_topology(configuration_directory())) return {};
    return parse_leaf_switches(
        run_and_read({"timeout", "10", "sh", "-c", "exec scontrol show topology 2>/dev/null"}));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace sailor
