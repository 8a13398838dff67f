// Settings of a command line that override the job spec: shared by `sailor plan` and the options of sbatch,
// so that both mean the same. Every parser takes the option's name for its message, and throws InputError.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/job_spec.h"

namespace sailor {

// Maximum factor on the search effort.
inline constexpr double kMostEffort = 1000;

struct PlanOverrides {
  std::optional<Objective> objective;
  PerExpense<std::optional<double>> most;  // per iteration
  std::optional<double> min_iterations_per_s;
  // By `TYPE`, `TYPE@ZONE` or kTotalGpus; others keep the value of the job spec.
  std::map<std::string, int> max_gpus;
  std::vector<std::string> zones;       // replaces the job spec's list; empty = keep
  std::vector<std::string> partitions;  // the same
};

Objective parse_objective_option(const std::string& text, const std::string& option);
double parse_limit(Expense expense, const std::string& text, const std::string& option);  // > 0
double parse_min_throughput(const std::string& text,
                            const std::string& option);  // iterations per second; > 0
std::map<std::string, int> parse_max_gpus(const std::string& text,
                                          const std::string& option);  // `A=1,B@ZONE=2,total=3`
std::string max_gpus_text(const std::map<std::string, int>& limits);   // which parse_max_gpus reads
std::vector<std::string> parse_name_list(const std::string& text, const std::string& option);  // `a,b`
double parse_time_limit(const std::string& text, const std::string& option);  // `2`, `500ms`; seconds, > 0
double parse_effort(const std::string& text, const std::string& option);      // in (0, kMostEffort]

void apply(const PlanOverrides& overrides, JobSpec& job);

}  // namespace sailor
