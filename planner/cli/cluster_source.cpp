#include "planner/cli/cluster_source.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "planner/cli/data_directory.h"
#include "planner/cli/external.h"
#include "planner/spec/error.h"
#include "planner/spec/text_file.h"

namespace sailor::cli {

Snapshot read_cluster(const std::string& file, const std::string& config) {
  if (!file.empty()) return load_snapshot(file);
  if (!has_site(config))
    throw InputError(fmt::format(
        "there is no site config {}, so no cluster is known here: give --cluster FILE", site_config_path()));
  std::string program = find_external("cluster");
  if (program.empty()) {
    throw InputError(
        "the program sailor-cluster, which reads the live cluster, is not installed, give --cluster FILE");
  }
  std::vector<std::string> arguments = {"--yaml"};
  if (!config.empty()) arguments.insert(arguments.end(), {"--config", config});
  std::string yaml = capture_external(program, arguments);
  require_text(yaml, "sailor-cluster");
  return parse_snapshot(yaml, "sailor-cluster");
}

std::string config_or_default(const std::string& config) {
  return config.empty() ? site_config_path() : config;
}

bool has_site(const std::string& config) {
  std::error_code error;
  return !config.empty() || std::getenv("SAILOR_CONFIG") != nullptr ||
         std::filesystem::exists(site_config_path(), error);
}

SiteConfig site_or_default(const std::string& config) {
  if (has_site(config)) return load_site_config(config_or_default(config));
  SiteConfig site;
  site.catalog = assumptions_directory() + "/catalog.yaml";
  std::error_code error;
  if (std::filesystem::is_directory("profiles", error)) site.profiles = {"profiles"};
  return site;
}

}  // namespace sailor::cli
