#include "trainer/cli/other_trainer.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <sstream>

#include "planner/plan/plan_json.h"
#include "planner/plan/rank_layout.h"
#include "planner/report/megatron_flags.h"
#include "planner/spec/framework_style.h"
#include "planner/spec/text_file.h"
#include "trainer/elastic/program_controller.h"
#include "trainer/elastic/program_record.h"
#include "trainer/launch/programs.h"

namespace sailor {
namespace {

constexpr const char* kFlags = "{flags}";

std::vector<std::string> flags_of(const JobSpec& job, const Plan& plan, const FrameworkStyle& framework) {
  const Where where = job.where("trainer.command");
  if (framework.flags == FrameworkStyle::Flags::none)
    throw InputError(where,
                     fmt::format("trainer.command: {} has no flags for a plan; take `{}` out, and read "
                                 "the plan from the environment (SAILOR_PLAN)",
                                 framework.name, kFlags));
  const MegatronFlags flags = megatron_flags(job, plan);
  if (!flags.why_not.empty())
    throw InputError(where, fmt::format("{} cannot run the plan: {}", framework.name, flags.why_not));
  std::vector<std::string> words;
  for (const std::string& flag : flags.flags) {
    std::istringstream in(flag);
    for (std::string word; in >> word;) words.push_back(word);
  }
  return words;
}

// The job's command. A word `{flags}` becomes the flags by which its framework takes the plan.
std::vector<std::string> command_of(const JobSpec& job, const FrameworkStyle& framework, const Plan& plan) {
  std::vector<std::string> command;
  for (const std::string& word : job.trainer.command) {
    if (word != kFlags) {
      command.push_back(word);
      continue;
    }
    const std::vector<std::string> flags = flags_of(job, plan, framework);
    command.insert(command.end(), flags.begin(), flags.end());
  }
  return command;
}

}  // namespace

int run_other_trainer(const JobSpec& job, const std::string& job_text, const Plan& plan,
                      const ControllerOptions& options, Scheduler& scheduler) {
  namespace fs = std::filesystem;
  const FrameworkStyle framework = framework_of_trainer(job);
  const std::vector<std::string> command = command_of(job, framework, plan);
  fs::create_directories(options.run_directory);
  if (options.elastic)
    return run_elastic_programs(
        {job, job_text, plan, framework,
         [&job, framework](const Plan& next) { return command_of(job, framework, next); }},
        options, scheduler, std::cout);
  const std::string plan_file = fs::absolute(options.run_directory) / "plan.json";
  write_file_atomically(plan_file, to_json(plan));
  if (!options.planning.empty()) write_planning(options.run_directory, options.planning);
  std::cout << fmt::format("sailor: starting {} ranks of {} on {} nodes, plan in {}\n", num_ranks(plan),
                           command.front(), RankLayout(plan).nodes().size(), plan_file)
            << std::flush;
  const RunDirectory directory(options.run_directory);
  directory.write_document("job.yaml", job_text);
  ProgramRecord record(job, plan, framework, directory, options);
  const auto say = [](const std::string& text) { std::cout << "sailor: " << text << '\n' << std::flush; };
  const int code = launch_programs(scheduler,
                                   {.plan = plan,
                                    .order = framework.rank_order,
                                    .command = command,
                                    .allocation = options.allocation,
                                    .plan_file = plan_file,
                                    .steps_directory = record.steps_directory(),
                                    .grace_s = job.trainer.grace_s,
                                    .say = say},
                                   [&record] { record.look(); });
  RunSummary summary;
  summary.job_id = options.allocation.job_id;
  summary.status = code == 0 ? "finished" : "failed";
  if (code != 0) summary.error = fmt::format("a rank failed, exit code {}", code);
  summary.moved = options.moved;
  std::cout << record.conclude(summary);
  std::cout << (code == 0 ? "sailor: all ranks have ended\n"
                          : fmt::format("sailor: a rank failed, exit code {}\n", code))
            << std::flush;
  return code;
}

}  // namespace sailor
