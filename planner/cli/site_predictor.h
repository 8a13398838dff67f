// Predictions of runs of our own trainer on this site, from the site's catalog and profiles, like those of a
// plan of the same job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/prediction.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/site_config.h"

namespace sailor::cli {

// Reads the site's files on first use. Not thread-safe.
class SitePredictor {
 public:
  // `config` empty: site_config_path(), and a missing file is not an error.
  explicit SitePredictor(std::string config) : config_(std::move(config)) {}

  struct Predicted {
    Prediction prediction;
    bool estimated = false;  // layer times of some GPU type were not measured
  };
  // Throws InputError when a file of the site is broken. If the files lack data for this run, returns
  // nothing, and `reason` says why.
  std::optional<Predicted> predict(const MeasuredRun& record, std::string& reason);

 private:
  struct Site {
    SiteConfig config;
    Catalog catalog;
  };
  bool load(std::string& reason);
  const ProfileSet& profiles_of(const JobSpec& job, const FrameworkStyle& framework);

  std::string config_;
  std::optional<Site> site_;
  std::map<std::string, ProfileSet> profiles_;  // by model, precision and framework
};

}  // namespace sailor::cli
