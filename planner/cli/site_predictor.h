// Predictions of measured runs: on platforms that the assumptions describe, of our own trainer on this site
// from its profiles, and of other frameworks on this site from its catalog and links, like those of a plan of
// the same job.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/measured_run.h"
#include "planner/profile/profile_set.h"
#include "planner/simulator/assumptions.h"
#include "planner/simulator/prediction.h"
#include "planner/spec/catalog.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/site_config.h"

namespace sailor::cli {

inline constexpr const char* kThisSite = "site";  // platform of runs of other frameworks here

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
  std::optional<Predicted> predict(const MeasuredRun& record, const Assumptions& assumptions,
                                   std::string& reason);

  // The same from the assumptions and links alone, without layer profiles of the site; after add_site().
  // Throws InputError.
  Prediction predict_estimated(const MeasuredRun& record, const Assumptions& assumptions);

  // Adds what is known of this site for runs of other frameworks on the platform kThisSite: the GPU types of
  // its catalog, and the platform. Does nothing without such a run.
  void add_site(const std::vector<MeasuredRun>& records, Assumptions& assumptions);

 private:
  std::optional<Predicted> predict_own(const MeasuredRun& record, std::string& reason);
  struct Site {
    SiteConfig config;
    Catalog catalog;
  };
  bool load(std::string& reason);
  bool is_own(const MeasuredRun& record, const Assumptions& assumptions) const;
  const ProfileSet& profiles_of(const JobSpec& job, const FrameworkStyle& framework);

  std::string config_;
  std::optional<Site> site_;
  std::map<std::string, ProfileSet> profiles_;  // by model, precision and framework
  std::optional<ProfileSet> links_;             // of this site, and nothing else
};

}  // namespace sailor::cli
