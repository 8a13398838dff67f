// Slurm's plugstack.conf (spank(8)): which plugins Slurm loads. Reads files, knows nothing of libslurm.
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
  std::string path;  // absolute, or a name that Slurm looks for in its PluginDir
  std::vector<std::string> arguments;
  Where where{"", 0};
};

// The entries of a file and of those that it includes, in Slurm's order. Throws std::runtime_error when the
// file itself cannot be read; included files that cannot be are left out, as Slurm does.
std::vector<PlugstackEntry> read_plugstack(const std::string& path);

// The path of a plugin, of the directories in `plugin_dir` (separated by colons) when it is only a name;
// nothing when there is no such file.
std::optional<std::string> find_plugin(const PlugstackEntry& entry, const std::string& plugin_dir);

// What the plugin's file says it was built for, as SLURM_VERSION_NUMBER. Throws std::runtime_error when it is
// no SPANK plugin or cannot be loaded.
unsigned int built_for(const std::string& plugin);
// SLURM_VERSION_NUMBER of "22.05.8"; 0 when it is no version. And back, to the release: "22.05".
unsigned int version_number(const std::string& version);
std::string release_of(unsigned int version_number);

// Is our plugin in the stack, once, optional, there, and built for this Slurm?
Findings check_plugstack(const std::string& path, const std::string& plugin_dir, unsigned int slurm_version);

}  // namespace sailor
