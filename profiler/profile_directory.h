// The default directory of measured profiles. Header only, pure except for reading the site config.
#pragma once

#include <filesystem>
#include <string>

#include "planner/spec/site_config.h"

namespace sailor {

// The site's first profile directory; "profiles" without a site. Throws InputError.
inline std::string default_profile_directory() {
  if (!std::filesystem::exists(site_config_path())) return "profiles";
  const SiteConfig site = load_site_config(site_config_path());
  return site.profiles.empty() ? "profiles" : site.profiles.front();
}

}  // namespace sailor
