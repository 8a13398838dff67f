#include "spank_plugin/slurm/leaf_switches.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

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

// A template, so that of the two forms only the one that this release has is compiled.
template <typename Message>
std::map<std::string, std::string> leaves_of(Message* message) {
  if constexpr (requires { message->topo_array; }) {
    std::map<std::string, std::string> switches;
    for (uint32_t i = 0; i < message->record_count; ++i) {
      const auto& record = message->topo_array[i];
      if (record.level == 0 && record.name != nullptr && record.nodes != nullptr)
        note_leaf(record.name, record.nodes, switches);
    }
    return switches;
  } else {
    char* text = nullptr;
    size_t size = 0;
    FILE* out = open_memstream(&text, &size);
    if (out == nullptr) return {};
    slurm_print_topo_info_msg(out, message, nullptr, 1);
    fclose(out);
    const std::unique_ptr<char, decltype(&free)> owner(text, free);
    return parse_leaf_switches(std::string(text, size));
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
  topo_info_response_msg_t* raw = nullptr;
  if (slurm_load_topo(&raw) != SLURM_SUCCESS || raw == nullptr) return {};
  const std::unique_ptr<topo_info_response_msg_t, decltype(&slurm_free_topo_info_msg)> topology(
      raw, slurm_free_topo_info_msg);
  return leaves_of(raw);
}

}  // namespace sailor
