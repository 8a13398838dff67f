// The --sailor-* options of sbatch and their values for the planner. Pure; independent
// of SPANK.
//
// Values come from the command line or an #SBATCH line; a missing option takes the value of its environment
// variable (--sailor-max-gpus: SAILOR_MAX_GPUS). The environment alone never makes a job a planned one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "planner/inputs/submit_option_table.h"
#include "planner/spec/objective.h"
#include "planner/spec/overrides.h"

namespace sailor {

using OptionDefinition = sailor_option;
std::span<const OptionDefinition> option_definitions();
// The name of the one that limits an expense: `sailor-max-cost`.
std::string limit_option(Expense expense);

// Given options by name (without the dashes); an option without argument has an empty value.
using OptionValues = std::map<std::string, std::string>;
// Adds options that only the environment has. `get` is getenv, or a test's own.
void add_environment_defaults(OptionValues& values, const char* (*get)(const char* name));

struct SubmitOptions {
  PlanOverrides overrides;
  bool dry_run = false;
  std::string plan_file;              // empty = search
  std::string job_file;               // empty = the script is the job spec
  bool wait_for_nodes = false;        // plan with busy nodes too, and queue for them
  bool choose_start = true;           // start now or later, whichever ends first (planner/start)
  std::optional<double> most_wait_s;  // for that; nothing = any wait
  std::string deadline;               // for the end of the job; empty = none
  bool pin = false;                   // the job starts on the planned nodes only
  bool chain = true;                  // another job continues this one, if it has checkpoints
  bool fresh = false;
  std::optional<double> time_limit_s;  // of the planner
  std::optional<double> effort;
};

// Throws InputError naming the option.
SubmitOptions parse_submit_options(const OptionValues& values);
// A time after `now_s`, both in seconds since 1970: `14:30` (local time, today or tomorrow), `2026-03-01`,
// `2026-03-01T14:30[:00]`, `now+12h`. Throws InputError.
int64_t parse_deadline(const std::string& text, int64_t now_s);
// The upper end of Slurm's `--nodes=N` or `--nodes=MIN-MAX`. Throws InputError.
int parse_max_nodes(const std::string& text);

}  // namespace sailor
