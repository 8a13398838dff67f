#include "planner/cli/site_predictor.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/cli/cluster_source.h"
#include "planner/inputs/load_inputs.h"
#include "planner/simulator/native_model.h"
#include "planner/simulator/run_prediction.h"
#include "planner/spec/error.h"

namespace sailor::cli {

bool SitePredictor::load(std::string& reason) {
  if (site_) return true;
  const std::string path = config_or_default(config_);
  if (!has_site(config_)) {
    reason = "there is no site config " + path + " to read profiles from; give --config FILE";
    return false;
  }
  Site site;
  site.config = load_site_config(path);
  site.catalog = load_catalog(site.config.catalog);
  site_ = std::move(site);
  return true;
}

const ProfileSet& SitePredictor::profiles_of(const JobSpec& job, const FrameworkStyle& framework) {
  const ModelSpec& m = job.model;
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", m.family, m.layers, m.hidden, m.heads,
                  m.head_width(), m.key_value_heads(), m.feed_forward, m.sequence, m.vocabulary,
                  m.attention_window, m.tied_embeddings, to_string(job.training.precision), framework.name);
  const auto known = profiles_.find(key);
  if (known != profiles_.end()) return known->second;
  return profiles_.emplace(key, load_profiles(site_->config.profiles, job, site_->catalog, framework))
      .first->second;
}

bool SitePredictor::is_own(const MeasuredRun& record, const Assumptions& assumptions) const {
  return record.framework == own_framework().name && !assumptions.platforms.contains(record.platform);
}

void SitePredictor::add_site(const std::vector<MeasuredRun>& records, Assumptions& assumptions) {
  for (const MeasuredRun& record : records) {
    std::string reason;
    if (record.platform != kThisSite || is_own(record, assumptions) || !load(reason)) continue;
    if (!links_) {
      for (const auto& [name, type] : site_->catalog.gpu_types) assumptions.catalog.gpu_types[name] = type;
      links_.emplace().network = load_links(site_->config.profiles, site_->catalog,
                                            assumptions.framework(record.framework).transport);
    }
    Platform& platform = assumptions.platforms[record.platform];
    platform.name = record.platform;
    platform.file = config_or_default(config_);
    std::map<std::string, int> gpus;  // by node
    for (const PlanPipeline& pipeline : record.plan.pipelines)
      for (const PlanStage& stage : pipeline.stages) gpus[stage.node] += stage.shape.gpus();
    for (const auto& [node, count] : gpus) platform.gpus_per_node = std::max(platform.gpus_per_node, count);
  }
}

Prediction SitePredictor::predict_estimated(const MeasuredRun& record, const Assumptions& assumptions) {
  std::string reason;
  const bool here = record.platform == kThisSite;
  if (here && !links_ && !load(reason)) throw InputError(record.where, reason);
  assumptions.platform(record.platform);  // first: it says most about what a run is
  return predict_run(record, assumptions, here ? &*links_ : nullptr);
}

std::optional<SitePredictor::Predicted> SitePredictor::predict(const MeasuredRun& record,
                                                               const Assumptions& assumptions,
                                                               std::string& reason) {
  if (is_own(record, assumptions)) return predict_own(record, reason);
  try {
    return Predicted{predict_estimated(record, assumptions), true};
  } catch (const InputError& error) {
    reason = error.what();
    return std::nullopt;
  }
}

std::optional<SitePredictor::Predicted> SitePredictor::predict_own(const MeasuredRun& record,
                                                                   std::string& reason) {
  if (!load(reason)) return std::nullopt;
  if (record.family.empty()) {
    reason = "the run does not say of which family its model is, so no profile of the site can be its";
    return std::nullopt;
  }
  JobSpec job = job_of(record);
  job.file = "JOB.yaml";  // for advice only
  try {
    FrameworkStyle style = framework_of(job, site_->config, site_->catalog, gpu_types_of(record.plan));
    const ProfileSet& profiles = profiles_of(job, style);
    for (const auto& [key, value] : record.options) style.set(key, value, record.where);
    const Snapshot snapshot;
    const Prediction prediction =
        native::simulate({job, snapshot, site_->catalog, profiles, style}, record.plan);
    return Predicted{prediction, prediction.uncertainty > 0};
  } catch (const InputError& error) {
    // There is no job spec, so a place in it would not help.
    reason = error.what();
    if (error.where().file == job.file) reason.erase(0, error.where().text().size() + 2);
  } catch (const std::invalid_argument& error) {  // a schedule that does not exist
    reason = error.what();
  }
  return std::nullopt;
}

}  // namespace sailor::cli
