// Where a verb gets the cluster from: a snapshot file, or the live cluster through the program
// `sailor-cluster`.
#pragma once

#include <string>

#include "planner/spec/site_config.h"
#include "planner/spec/snapshot.h"

namespace sailor::cli {

// `file` empty: runs `sailor-cluster --yaml`, with `config` (the site config) when that is not empty. Throws
// InputError when that program is not installed, ExternalFailure when it failed.
Snapshot read_cluster(const std::string& file, const std::string& config);

// `config` when given, else site_config_path().
std::string config_or_default(const std::string& config);

// Does somebody name a site config (`config`, SAILOR_CONFIG), or is there one where it usually is?
bool has_site(const std::string& config);

// The site of config_or_default(). Without has_site() one without a file: the catalog that is installed with
// this program, and profiles in ./profiles if that exists; a plan needs no more than a snapshot then.
SiteConfig site_or_default(const std::string& config);

}  // namespace sailor::cli
