// Output of verbs: stdout in the requested format.
#pragma once

#include <string>
#include <string_view>

#include "planner/cli/commands.h"

namespace sailor::cli {

// Writes to stdout; throws std::runtime_error when that fails (a full disk, a closed pipe).
void print(std::string_view text);
// One diagnostic line on stderr: `sailor: TEXT`.
void diagnose(std::string_view text);
// A JSON text as block-style YAML.
std::string json_to_yaml(const std::string& json);
// Writes the JSON text to `file`, unless that is empty, and prints it if the format is JSON or YAML. Returns
// whether it printed.
bool print_data(Format format, const std::string& file, const std::string& json);

}  // namespace sailor::cli
