#include "planner/cli/plan_source.h"

#include "planner/cli/cluster_source.h"
#include "planner/cli/model_source.h"
#include "planner/cli/output.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "planner/spec/trainer_spec.h"

namespace sailor::cli {
namespace {

JobSpec job_of_model(const PlanSource& source) {
  JobSpec job;
  job.file = "JOB.yaml";  // for advice only
  job.model = read_model_file(source.model);
  if (source.sequence) set_sequence(job.model, *source.sequence);
  job.training.global_batch = source.global_batch;
  job.training.precision = source.precision;
  return job;
}

// The trainer that the command line names, instead of the job's.
void set_trainer(const std::string& name, JobSpec& job) {
  if (name.empty() || name == job.trainer.kind) return;
  job.trainer = {};
  if (name == kOwnTrainer) return;
  std::vector<std::string> known = trainer_kind_names();
  known.insert(known.begin(), kOwnTrainer);
  if (!trainer_kinds().contains(name))
    throw InputError("--trainer: must be " + alternatives(known) + ", is " + in_quotes(name) +
                     did_you_mean(name, known));
  job.trainer.kind = name;
}

const std::string& given(const PlanSource& source) {
  return source.model.empty() ? source.job : source.model;
}

}  // namespace

PlanningInputs read_inputs(const PlanSource& source) {
  parse_search_space(source.search_space);
  parse_cost_model(source.cost_model);
  JobSpec job = source.model.empty() ? load_job_spec(source.job) : job_of_model(source);
  set_trainer(source.trainer, job);
  return load_inputs(std::move(job), site_or_default(source.config), source.overrides,
                     [&](const SiteConfig& site) { return read_cluster(source.cluster, site.file); });
}

SearchRequest request_of(const PlanSource& source) {
  SearchRequest request;
  request.space = parse_search_space(source.search_space);
  request.cost_model = parse_cost_model(source.cost_model);
  request.allow = source.allow;
  request.time_limit_s = source.time_limit_s;
  request.effort = source.effort;
  return request;
}

void print_notes(const PlanningInputs& inputs) {
  for (const std::string& note : inputs.notes) diagnose("note: " + note);
}

int exit_code(const PlanSource& source, SearchStatus status, const std::string& reason) {
  switch (status) {
    case SearchStatus::found:
      break;
    case SearchStatus::infeasible:
      diagnose(given(source) + ": no feasible plan: " + reason);
      return kInfeasible;
    case SearchStatus::time_limit:
      diagnose(given(source) + ": no plan within the time limit: " + reason);
      return kTimeLimit;
  }
  return kDone;
}

}  // namespace sailor::cli
