#include "spank_plugin/doctor/plugstack.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>

#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginFile = "spank_sailor.so";
constexpr const char* kPlannerFile = "sailor_planner.so";  // which the plugin opens, in its own directory

std::vector<std::string> matches_of(const std::string& pattern) {
  std::vector<std::string> files;
  glob_t found{};
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

void read_into(const std::string& path, std::set<std::string>& open, std::vector<PlugstackEntry>& entries) {
  if (!open.insert(path).second) return;  // a file that includes itself
  std::istringstream lines(read_text_file(path));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (const size_t comment = line.find('#'); comment != std::string::npos) line.resize(comment);
    std::istringstream stream(line);
    std::string kind, target;
    if (!(stream >> kind >> target)) continue;
    if (kind == "include") {
      for (const std::string& file : matches_of(relative_to_file(target, path))) {
        try {
          read_into(file, open, entries);
        } catch (const std::exception&) {
        }
      }
      continue;
    }
    PlugstackEntry entry{kind == "required", target, {}, {path, number}};
    for (std::string argument; stream >> argument;) entry.arguments.push_back(argument);
    entries.push_back(std::move(entry));
  }
  open.erase(path);
}

}  // namespace

std::vector<PlugstackEntry> read_plugstack(const std::string& path) {
  std::vector<PlugstackEntry> entries;
  std::set<std::string> open;
  read_into(path, open, entries);
  return entries;
}

std::optional<std::string> find_plugin(const PlugstackEntry& entry, const std::string& plugin_dir) {
  std::error_code error;
  if (entry.path.starts_with("/"))
    return fs::exists(entry.path, error) ? std::optional(entry.path) : std::nullopt;
  std::istringstream directories(plugin_dir);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string path = directory + "/" + entry.path;
    if (fs::exists(path, error)) return path;
  }
  return std::nullopt;
}

unsigned int built_for(const std::string& plugin) {
  const std::unique_ptr<void, int (*)(void*)> library(dlopen(plugin.c_str(), RTLD_LAZY | RTLD_LOCAL),
                                                      dlclose);
  if (!library) throw std::runtime_error(dlerror());
  const void* version = dlsym(library.get(), "plugin_version");
  if (version == nullptr) throw std::runtime_error(plugin + ": is not a Slurm plugin");
  return *static_cast<const unsigned int*>(version);
}

void check_planner_library(const std::string& library) {
  const std::unique_ptr<void, int (*)(void*)> opened(dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL),
                                                     dlclose);
  if (!opened) throw std::runtime_error(dlerror());
}

unsigned int version_number(const std::string& version) {
  unsigned int major = 0, minor = 0, micro = 0;
  if (std::sscanf(version.c_str(), "%u.%u.%u", &major, &minor, &micro) < 2) return 0;
  return major << 16 | minor << 8 | micro;
}

std::string release_of(unsigned int version_number) {
  return fmt::format("{}.{:02}", version_number >> 16 & 0xff, version_number >> 8 & 0xff);
}

Findings check_plugstack(const std::string& path, const std::string& plugin_dir, unsigned int slurm_version) {
  std::vector<PlugstackEntry> entries;
  const std::string line = "include /etc/slurm/plugstack.conf.d/*.conf";
  try {
    for (PlugstackEntry& entry : read_plugstack(path))
      if (fs::path(entry.path).filename() == kPluginFile) entries.push_back(std::move(entry));
  } catch (const std::exception& error) {
    return {problem("plugstack", error.what(), fmt::format("create {} with the line `{}`", path, line))};
  }
  if (entries.empty())
    return {problem("plugstack", fmt::format("{} has no line for {}", path, kPluginFile),
                    fmt::format("add the line `{}` to it", line))};
  Findings findings;
  if (entries.size() > 1)
    findings.push_back(problem("plugstack",
                               fmt::format("the plugin is loaded twice: {} and {}", entries[0].where.text(),
                                           entries[1].where.text()),
                               "remove one of the lines"));
  const PlugstackEntry& entry = entries.front();
  if (entry.required)
    findings.push_back(warning("plugstack", entry.where.text() + ": the plugin is `required`",
                               "use `optional`: a required plugin that cannot be loaded breaks every sbatch "
                               "and drains nodes"));
  const std::optional<std::string> file = find_plugin(entry, plugin_dir);
  if (!file) {
    findings.push_back(problem("plugin", fmt::format("{}: there is no {}", entry.where.text(), entry.path),
                               "install it there, or correct the path"));
    return findings;
  }
  try {
    const unsigned int version = built_for(*file);
    if (version >> 8 != slurm_version >> 8) {
      findings.push_back(problem("plugin",
                                 fmt::format("{} was built for Slurm {}, this is {}", *file,
                                             release_of(version), release_of(slurm_version)),
                                 "rebuild it with the headers of this release"));
    } else {
      check_planner_library(fs::path(*file).parent_path() / kPlannerFile);
      findings.push_back(well("plugin", fmt::format("{}, built for Slurm {}, in {}", *file,
                                                    release_of(version), entry.where.text())));
    }
  } catch (const std::exception& error) {
    findings.push_back(problem("plugin", error.what(), "reinstall it"));
  }
  return findings;
}

}  // namespace sailor
