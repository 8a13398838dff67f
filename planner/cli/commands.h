// The built-in verbs of `sailor`: their command lines as plain options, and one function per verb that
// returns an exit code. Errors are thrown; main.cpp prints them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/inputs/search_request.h"
#include "planner/plan/features.h"
#include "planner/replay/replay.h"
#include "planner/spec/overrides.h"

namespace sailor::cli {

// framework: a configuration of report/framework_config.h.
enum class Format { table, json, yaml, csv, markdown, framework };

// The name of Sailor's own trainer among those of frameworks.
inline constexpr const char* kOwnTrainer = "sailor";

// Job, input files and search options: common to the verbs that search.
struct PlanSource {
  std::string job;
  // Instead of `job`: a model's config.json, and what else a plan depends on.
  std::string model;
  std::optional<int> sequence;  // absent = the longest that the model has
  int64_t global_batch = 256;
  Precision precision = Precision::bf16;
  std::string trainer;  // its kind, or kOwnTrainer; empty = the job's
  std::string config;   // site config; empty = site_config_path()
  std::string cluster;  // snapshot file; empty = the live cluster
  PlanOverrides overrides;
  std::string search_space = "full";
  std::string cost_model = "native";
  std::optional<PlanFeatures> allow;   // absent = what the trainer supports
  std::optional<double> time_limit_s;  // absent = the site's
  std::optional<double> effort;        // likewise
  bool quiet = false;                  // no progress
};

struct PlanCommand {
  PlanSource source;
  int top = kShownCandidates;
  Format format = Format::table;
  std::string framework;  // name of the format, if it is Format::framework
  std::string previous;   // file of the previous plan, or of the result that it came from; empty = none
  std::string output;     // file for the chosen plan; empty = none
  std::string result;     // file for the result as JSON, whatever the format; empty = none
};

// A model without a job spec.
struct ModelCommand {
  std::string model;            // config.json, the directory that has it, or a job spec
  std::optional<int> sequence;  // absent = the model's
  Format format = Format::table;
};

struct ExplainCommand {
  PlanSource source;
  std::string run;   // job id or directory of the run to explain; empty = none
  std::string plan;  // file of the plan to explain; empty = the best plan found
  Format format = Format::table;
  std::string result;  // as in PlanCommand
};

struct ParetoCommand {
  PlanSource source;
  int points = 10;
  Format format = Format::table;
  std::string svg;     // file for the picture; empty = none
  std::string result;  // as in PlanCommand
};

struct SimulateCommand {
  std::string run;  // as in ExplainCommand
  std::string job;
  std::string plan;
  std::string config;
  std::string cluster;  // empty = prices of the site config and catalog, nodes not checked
  std::string cost_model = "native";
  Format format = Format::table;
  std::string trace, html, svg;  // files for pictures of the iteration; empty = none
  std::string result;            // as in PlanCommand
};

struct ValidateCommand {
  std::string dataset;                    // runs: a file or a directory
  std::string config;                     // site config, for runs on this site; empty = site_config_path()
  std::string assumptions;                // directory; empty = assumptions_directory()
  std::vector<std::string> calibrations;  // files, applied in this order
  Format format = Format::table;
  std::string svg;  // file for the plot of predicted against measured times; empty = none
};

struct CalibrateCommand {
  std::string dataset, config, assumptions;  // as in ValidateCommand
  std::string framework;                     // the runs of this one; empty = all are of one
  bool memory = true;                        // also fit peak memory, where it was measured
  Format format = Format::table;
  std::string output;  // calibration file; empty = none
};

struct ReplayCommand {
  PlanSource source;  // the cluster is only used for prices, regions and node sizes; empty = none
  std::string trace;
  std::string gpu_type, zone;  // for a trace without them
  int gpus_per_node = 0;       // 0 = as in the cluster, else 1
  std::optional<double> until_s;
  std::optional<int64_t> checkpoint_steps;  // absent = the job's, else by time
  ReplayOptions options;
  uint64_t seed = 1;
  bool events = false;
  Format format = Format::table;
};

struct ReportCommand {
  std::string run;      // job id or directory; empty = the newest run here
  std::string config;   // site config, for predictions; empty = site_config_path()
  std::string cluster;  // snapshot to search for other plans; empty = the run's own nodes
  std::string out;      // file of the page; empty = report.html in the run's directory
};

struct SchemaCommand {
  Format format = Format::json;
};

struct VersionCommand {
  bool full = false;
  bool json = false;
};

struct ClusterCommand {
  std::string cluster;  // snapshot file; empty = the live cluster
  std::string config;
  Format format = Format::table;
};

int run_model(const ModelCommand& command);
int run_plan(const PlanCommand& command);
int run_explain(const ExplainCommand& command);
int run_pareto(const ParetoCommand& command);
int run_simulate(const SimulateCommand& command);
int run_calibrate(const CalibrateCommand& command);
int run_validate(const ValidateCommand& command);
int run_replay(const ReplayCommand& command);
int run_report(const ReportCommand& command);
int run_cluster(const ClusterCommand& command);
int run_schema(const SchemaCommand& command);
int run_version(const VersionCommand& command);

}  // namespace sailor::cli
