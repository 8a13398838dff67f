// The source of a verb's cluster: a snapshot file, or the live cluster through the program `sailor-cluster`.
#pragma once

#include <string>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor::cli {

// Empty `file`: runs `sailor-cluster --yaml`, with `config` (the site config) if not empty. Throws InputError
// when that program is not installed, ExternalFailure when it failed.
Snapshot read_cluster(const std::string& file, const std::string& config);

// `config` if not empty, else site_config_path().
std::string config_or_default(const std::string& config);

// Is a site config named (`config`, SAILOR_CONFIG), or is there one in the default place?
bool has_site(const std::string& config);

// The site of config_or_default(). Without has_site() a site without a file: the installed catalog, and
// profiles in ./profiles if it exists, so that a plan only needs a snapshot.
SiteConfig site_or_default(const std::string& config);

}  // namespace sailor::cli
