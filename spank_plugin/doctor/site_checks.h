// Checks the site's files against the cluster. The cluster comes as values. Independent of libslurm.
#pragma once

#include <optional>
#include <string>

#include "planner/spec/catalog.h"
#include "planner/spec/site_config.h"
#include "spank_plugin/doctor/finding.h"
#include "spank_plugin/slurm/slurm_view.h"

namespace sailor {

struct Site {
  SiteConfig config;
  Catalog catalog;
};

// Loads site config and catalog; nothing if one of them cannot be loaded, which is added to `findings`.
std::optional<Site> check_site(const std::string& config_file, Findings& findings);
// Is every GPU type of the cluster's nodes one of the catalog's?
Findings check_gres(const Site& site, const SlurmView& cluster);
// Can the profiles be read, and is there one for every GPU type of the cluster; are there links?
Findings check_profiles(const Site& site, const SlurmView& cluster);

}  // namespace sailor
