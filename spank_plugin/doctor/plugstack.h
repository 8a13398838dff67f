// Slurm's plugstack.conf (spank(8)), the list of plugins that Slurm loads. Reads files, independent of
// libslurm.
//
//     required|optional PATH [ARGUMENT...]        # comment
//     include GLOB
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/spec/error.h"
#include "spank_plugin/doctor/finding.h"

namespace sailor {

struct PlugstackEntry {
  bool required = false;
  std::string path;  // absolute, or a name relative to Slurm's PluginDir
  std::vector<std::string> arguments;
  Where where{"", 0};
};

// The entries of a file and of those that it includes, in Slurm's order. Throws std::runtime_error when the
// file itself cannot be read; unreadable included files are skipped, as in Slurm.
std::vector<PlugstackEntry> read_plugstack(const std::string& path);

// The path of a plugin, searched in the directories of `plugin_dir` (separated by colons) if it is only a
// name; nothing if there is no such file.
std::optional<std::string> find_plugin(const PlugstackEntry& entry, const std::string& plugin_dir);

// The SLURM_VERSION_NUMBER that the plugin was built for. Throws std::runtime_error when it is not a SPANK
// plugin or cannot be loaded.
unsigned int built_for(const std::string& plugin);
// The library that the plugin opens to plan. Throws std::runtime_error with the reason when it cannot be
// loaded.
void check_planner_library(const std::string& library);
// SLURM_VERSION_NUMBER of "22.05.8"; 0 if it is not a version. And the release of such a number: "22.05".
unsigned int version_number(const std::string& version);
std::string release_of(unsigned int version_number);

// Is our plugin in the stack exactly once, optional, installed with the planner's library, and built
// for this Slurm?
Findings check_plugstack(const std::string& path, const std::string& plugin_dir, unsigned int slurm_version);

}  // namespace sailor
