// The parts of a planned submission that need no sbatch: options, script, command line, hand-over.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <fstream>

#include "planner/inputs/submit_options.h"
#include "planner/spec/error.h"
#include "planner/spec/text.h"
#include "spank_plugin/batch_script.h"
#include "spank_plugin/planned_command.h"
#include "spank_plugin/plugin_config.h"
#include "spank_plugin/second_life.h"
#include "spank_plugin/slurm/allocation.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string error_of(const OptionValues& values) {
  try {
    parse_submit_options(values);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(SubmitOptions, EveryOptionIsReadAndSaysWhoseItIs) {
  SubmitOptions options = parse_submit_options({{"sailor-objective", "cost"},
                                                {"sailor-max-cost", "1.5 USD"},
                                                {"sailor-min-throughput", "0.25"},
                                                {"sailor-max-gpus", "X=4,Y=0,X@z=2"},
                                                {"sailor-zones", "z1,z2"},
                                                {"sailor-partitions", "p"},
                                                {"sailor-dry-run", ""},
                                                {"sailor-plan", "plan.json"},
                                                {"sailor-job", "job.yaml"},
                                                {"sailor-wait", "nodes"},
                                                {"sailor-chain", "no"},
                                                {"sailor-fresh", ""},
                                                {"sailor-time-limit", "3"},
                                                {"sailor-effort", "2.5"}});
  EXPECT_EQ(options.overrides.objective, Expense::cost);
  EXPECT_EQ(options.overrides.most[Expense::cost], 1.5);
  EXPECT_EQ(options.overrides.min_iterations_per_s, 0.25);
  EXPECT_THAT(options.overrides.max_gpus, UnorderedElementsAre(Pair("X", 4), Pair("Y", 0), Pair("X@z", 2)));
  EXPECT_THAT(options.overrides.zones, ElementsAre("z1", "z2"));
  EXPECT_THAT(options.overrides.partitions, ElementsAre("p"));
  EXPECT_TRUE(options.dry_run);
  EXPECT_EQ(options.plan_file, "plan.json");
  EXPECT_EQ(options.job_file, "job.yaml");
  EXPECT_TRUE(options.wait_for_nodes);
  EXPECT_FALSE(options.choose_start);
  EXPECT_EQ(options.chain, false);
  EXPECT_TRUE(options.fresh);
  EXPECT_EQ(options.time_limit_s, 3.0);
  EXPECT_EQ(options.effort, 2.5);
  for (const OptionDefinition& definition : option_definitions()) {
    EXPECT_THAT(definition.usage, testing::StartsWith("[sailor] "));
    EXPECT_LE(std::string(definition.name).size(), 75u);
  }
}

TEST(SubmitOptions, TheTableHasEveryObjectiveAndLimit) {
  const auto definition = [](const std::string& name) {
    for (const OptionDefinition& definition : option_definitions())
      if (definition.name == name) return definition;
    return OptionDefinition{};
  };
  EXPECT_EQ(definition("sailor-objective").usage,
            "[sailor] plan the job for this objective: " + alternatives(objective_names()));
  for (const Expense expense : kExpenses) {
    const OptionDefinition limit = definition(limit_option(expense));
    ASSERT_NE(limit.name, nullptr) << limit_option(expense);
    EXPECT_STREQ(limit.argument, kind_of(expense).unit);
    EXPECT_EQ(limit.usage, fmt::format("[sailor] maximum {} per iteration", kind_of(expense).unit));
  }
  for (const OptionDefinition& each : option_definitions()) {
    std::string environment = each.name;
    for (char& c : environment) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    EXPECT_EQ(each.environment, environment);
  }
}

TEST(SubmitOptions, BadValuesNameTheOption) {
  const std::pair<const char*, const char*> bad[] = {
      {"sailor-objective", "speed"},
      {"sailor-max-cost", "-1"},
      {"sailor-min-throughput", "fast"},
      {"sailor-max-gpus", "X"},
      {"sailor-max-gpus", "X=-2"},
      {"sailor-zones", "a,,b"},
      {"sailor-wait", "forever"},
      {"sailor-wait", "-5min"},
      {"sailor-deadline", "tomorrow"},
      {"sailor-deadline", "2001-01-01"},
      {"sailor-deadline", "now+"},
      {"sailor-deadline", "now+-9223744073709551616"},
      {"sailor-deadline", "25:10"},
      {"sailor-chain", "maybe"},
      {"sailor-time-limit", "0"},
      {"sailor-effort", "0"},
      {"sailor-effort", "much"},
      {"sailor-effort", "1001"},
      {"sailor-plan", ""},
      {"sailor-job", ""},
  };
  for (const auto& [name, value] : bad) {
    EXPECT_THAT(error_of({{name, value}}), HasSubstr(std::string("--") + name)) << value;
  }
}

TEST(SubmitOptions, WaitsAreWordsOrDurations) {
  const auto parsed = [](const char* value) { return parse_submit_options({{"sailor-wait", value}}); };
  EXPECT_TRUE(parse_submit_options({}).choose_start);
  EXPECT_TRUE(parsed("auto").choose_start);
  EXPECT_FALSE(parsed("auto").most_wait_s);
  EXPECT_EQ(parsed("none").most_wait_s, 0);
  EXPECT_EQ(parsed("30min").most_wait_s, 1800);
  EXPECT_EQ(parsed("2-12:00:00").most_wait_s, 60 * 3600);
  EXPECT_FALSE(parsed("plan").choose_start);
  EXPECT_FALSE(parsed("plan").wait_for_nodes);
}

TEST(SubmitOptions, ExactNodesAreAChoice) {
  EXPECT_FALSE(parse_submit_options({}).pin);
  EXPECT_TRUE(parse_submit_options({{"sailor-pin", ""}}).pin);
}

TEST(SubmitOptions, DeadlinesAreTimesAfterNow) {
  setenv("TZ", "UTC", 1);
  tzset();
  const int64_t noon = 1'700'049'600;  // 2023-11-15 12:00
  EXPECT_EQ(parse_deadline("14:30", noon), noon + 9000);
  EXPECT_EQ(parse_deadline("11:00", noon), noon + 23 * 3600);
  EXPECT_EQ(parse_deadline("2023-11-16", noon), noon + 12 * 3600);
  EXPECT_EQ(parse_deadline("2023-11-15T12:00:05", noon), noon + 5);
  EXPECT_EQ(parse_deadline("now+12h", noon), noon + 12 * 3600);
  EXPECT_THROW(parse_deadline("now+9e15h", noon), InputError);
}

TEST(SubmitOptions, TheEnvironmentFillsOnlyWhatTheCommandLineLeftOpen) {
  OptionValues values = {{"sailor-objective", "cost"}};
  add_environment_defaults(values, [](const char* name) -> const char* {
    if (std::string(name) == "SAILOR_OBJECTIVE") return "throughput";
    if (std::string(name) == "SAILOR_MAX_GPUS") return "X=1";
    if (std::string(name) == "SAILOR_DRY_RUN") return "0";
    return nullptr;
  });
  EXPECT_THAT(values, UnorderedElementsAre(Pair("sailor-objective", "cost"), Pair("sailor-max-gpus", "X=1")));
}

TEST(BatchScript, AJobSpecIsWhatSailorRunInterprets) {
  EXPECT_TRUE(is_job_spec("#!/usr/bin/env -S sailor run\nmodel: {}\n"));
  EXPECT_TRUE(is_job_spec("#!/opt/bin/sailor run"));
  EXPECT_FALSE(is_job_spec("#!/bin/bash\nsailor run job.yaml\n"));
  EXPECT_FALSE(is_job_spec("#!/bin/notsailor run\n"));
  EXPECT_FALSE(is_job_spec("model: {}\n"));
  EXPECT_FALSE(is_job_spec(""));
}

TEST(BatchScript, ACommandRunsAJobSpecByItselfOrThroughSailorRun) {
  std::string file = testing::TempDir() + "spec_command.yaml";
  std::ofstream(file) << "#!/usr/bin/env -S sailor run\nmodel: {}\n";
  EXPECT_EQ(job_spec_of_command({file, "--help"}), file);
  EXPECT_EQ(job_spec_of_command({"/opt/bin/sailor", "run", "--local", "job.yaml"}), "job.yaml");
  EXPECT_EQ(job_spec_of_command({"sailor", "plan", "job.yaml"}), std::nullopt);
  EXPECT_EQ(job_spec_of_command({"sailor", "run"}), std::nullopt);
  EXPECT_EQ(job_spec_of_command({"/bin/sh", file}), std::nullopt);
  EXPECT_EQ(job_spec_of_command({"/nowhere/at/all"}), std::nullopt);
  EXPECT_EQ(job_spec_of_command({}), std::nullopt);
}

TEST(BatchScript, ScriptsWithComponentsOfTheirOwnAreRefused) {
  refuse_components("#!/bin/bash\n#SBATCH --job-name=hetjob\n", "s");
  try {
    refuse_components("#!/bin/bash\n#SBATCH -n1\n#SBATCH hetjob\n", "script.sh");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().line, 3);
  }
}

TEST(PluginConfig, UnknownWordsAreErrors) {
  char config[] = "config=/x/site.yaml";
  char typo[] = "confg=/x";
  char* good[] = {config};
  char* bad[] = {typo};
  EXPECT_EQ(parse_plugin_config(1, good).site_config, "/x/site.yaml");
  EXPECT_EQ(parse_plugin_config(0, nullptr).site_config, "");
  EXPECT_THROW(parse_plugin_config(1, bad), InputError);
}

std::vector<std::string> component(const std::string& partition, const std::string& node) {
  Component component;
  component.partition = partition;
  component.nodes = {node};
  component.tasks = 1;
  component.tasks_by_node = {1};
  component.tasks_per_node = 1;
  component.gres = "gpu:x:1";
  return submit_options(component);
}

TEST(PlannedCommand, KeepsTheUsersWordsAndPutsThePlanBeforeTheScript) {
  auto command =
      planned_command({"sbatch", "-J", "a b", "job.yaml", "--epochs", ":"}, 3,
                      {component("p", "n1"), component("q", "n2")}, {"--no-kill"}, {"--cpus-per-task=2"});
  EXPECT_EQ(
      shell_line(command),
      "sbatch -J 'a b' --partition=p --nodelist=n1 --nodes=1 --ntasks=1 --ntasks-per-node=1 --gres=gpu:x:1 "
      "--no-kill : --cpus-per-task=2 --partition=q --nodelist=n2 --nodes=1 --ntasks=1 "
      "--ntasks-per-node=1 --gres=gpu:x:1 job.yaml --epochs :");
}

TEST(PlannedCommand, StaysBeforeTheEndOfOptionsMark) {
  auto command = planned_command({"sbatch", "--", "job.yaml"}, 2, {component("p", "n1")}, {}, {});
  EXPECT_EQ(command[1], "--partition=p");
  EXPECT_EQ(command[command.size() - 2], "--");
}

TEST(PlannedCommand, ShellLinesReadBackAsTheSameWords) {
  EXPECT_EQ(shell_line({"a", "", "it's", "x=y,z"}), "a '' 'it'\\''s' x=y,z");
}

TEST(PlannedCommand, FindsTheJobInWhatSbatchSays) {
  EXPECT_EQ(submitted_job("Submitted batch job 12\n"), 12u);
  EXPECT_EQ(submitted_job("Submitted batch job 12 on cluster x\n"), 12u);
  EXPECT_EQ(submitted_job("12\n"), 12u);
  EXPECT_EQ(submitted_job("12;x\n"), 12u);
  EXPECT_EQ(submitted_job(""), std::nullopt);
  EXPECT_EQ(submitted_job("12"), std::nullopt) << "cut off";
  EXPECT_EQ(submitted_job("sbatch: job 12\n"), std::nullopt);
}

TEST(SecondLife, TakesWhatTheFirstLeftExactlyOnce) {
  leave_to_second_life({{"SAILOR_PLAN_0", "abc="}, {"SAILOR_JOB", "/a b/c=d.yaml"}});
  auto taken = take_from_first_life();
  ASSERT_TRUE(taken.has_value());
  EXPECT_THAT(*taken, ElementsAre(Pair("SAILOR_PLAN_0", "abc="), Pair("SAILOR_JOB", "/a b/c=d.yaml")));
  EXPECT_FALSE(take_from_first_life().has_value());
}

TEST(SecondLife, AnotherProcessDoesNotTakeItForItsOwn) {
  setenv("SAILOR_SECOND_LIFE", "1:0", 1);
  EXPECT_FALSE(take_from_first_life().has_value());
  EXPECT_EQ(getenv("SAILOR_SECOND_LIFE"), nullptr);
}

}  // namespace
}  // namespace sailor
