// sailor version: what this program is, and what it and the trainer were built from and with.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "planner/cli/build_info.h"  // generated
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/cli/source_commit.h"  // generated
#include "planner/spec/error.h"

namespace sailor::cli {

int run_version(const VersionCommand& command) {
  nlohmann::ordered_json rows;
  for (const auto& [name, value] : kBuildInfo) {
    rows[name] = value;
    if (rows.size() == 1) rows["commit"] = SAILOR_COMMIT;
  }
  if (command.json) {
    print(rows.dump(2) + "\n");
    return kDone;
  }
  std::string text = fmt::format("sailor {}\n", rows.at("version").get<std::string_view>());
  if (command.full)
    for (const auto& [name, value] : rows.items())
      if (name != "version") text += fmt::format("{:<18}{}\n", name, value.get<std::string_view>());
  print(text);
  return kDone;
}

}  // namespace sailor::cli
