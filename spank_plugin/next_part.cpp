#include "spank_plugin/next_part.h"

#include <cstdlib>
#include <utility>

#include "spank_plugin/slurm/commands/job_environment.h"

namespace sailor {
namespace {

constexpr const char* kPreviousPart = "SAILOR_CONTINUES";

}  // namespace

std::optional<PreviousPart> take_previous_part() {
  const char* value = getenv(kPreviousPart);
  if (value == nullptr) return std::nullopt;
  const std::string text = value;
  unsetenv(kPreviousPart);
  return parse_previous_part(text);
}

Resubmission resubmission_of(const std::vector<GivenOption>& options, std::vector<std::string> arguments) {
  Resubmission submission{options_of_every_part(options), std::move(arguments), sbatch_defaults()};
  for (const OptionDefinition& option : option_definitions())
    if (const char* value = getenv(option.environment)) submission.environment[option.environment] = value;
  return submission;
}

void add_chain_variables(EnvironmentVariables& variables, const SubmitOptions& options, const JobSpec& job,
                         const Resubmission& submission, const std::optional<PreviousPart>& previous) {
  // An elastic program of another trainer continues from its own checkpoints.
  const bool continues = job.trainer.own() ? !job.checkpoint.directory.empty() : job.elastic.enabled;
  if (options.chain && continues) variables.emplace_back("SAILOR_SUBMISSION", to_json(submission));
  if (previous) variables.emplace_back("SAILOR_RUN", previous->run_directory);
  if (options.fresh && !previous) variables.emplace_back("SAILOR_FRESH", "1");
}

}  // namespace sailor
