// Where measured profiles go when nobody says where. Header only, pure but for reading the site config.
#pragma once

#include <filesystem>
#include <string>

#include "planner/spec/site_config.h"

namespace sailor {

// Where this site keeps its profiles, so that the planner finds what was measured; "profiles" without a site.
// Throws InputError.
inline std::string default_profile_directory() {
  if (!std::filesystem::exists(site_config_path())) return "profiles";
  const SiteConfig site = load_site_config(site_config_path());
  return site.profiles.empty() ? "profiles" : site.profiles.front();
}

}  // namespace sailor
