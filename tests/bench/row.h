// One row of the bench: a scenario planned, checked and compared with known results. Rows run in their own
// processes, so that time and memory are those of one row alone, including start-up and reading files.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/bench/baselines.h"
#include "tests/bench/reference_data.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

struct RowOptions {
  std::set<std::string> without;  // disabled prunings
  double time_limit_s = 10;
  std::string emit_plans;  // directory; empty = none
  bool quiet = false;      // print nothing to stderr
};

struct RowResult {
  std::string name;
  std::string status;  // found | stopped (a plan, before the search finished) | none | time_limit | invalid
  std::optional<double> iter_per_s, usd_per_iter;
  // iterations per second or USD per iteration, according to the row's objective
  std::optional<double> bound;
  std::optional<double> gap_pct;
  double search_cpu_s = 0;
  double total_cpu_s = 0;  // of the whole process
  double rss_mb = 0;       // peak of the whole process
  bool ref_ok = false, known_ok = false;
  // Not in the fixed columns:
  bool passed = false;  // valid, at least as good as known results and all baselines, and no wrong bound
  bool ended = false;   // the search finished, without reaching a limit of time or effort
  double value = 0;     // value of the objective: seconds or USD; 0 = no plan
  int64_t configurations = 0, labels = 0;
  int beaten = 0, compared = 0, noted = 0;  // baselines
  std::optional<Plan> plan;                 // not part of record()

  // The fixed columns as a line of CSV.
  static const char* header();
  std::string csv() const;
  // Everything but the plan, on one line, for the parent process.
  std::string record() const;
  static RowResult from_record(const std::string& line);
};

// Plans the scenario in this process. Failures are written to stderr.
RowResult run_row(const Scenario& scenario, const Inputs& inputs, const std::vector<Baseline>& baselines,
                  const RowOptions& options);

// Runs this program again with `arguments` and parses the last line of its output. Throws std::runtime_error
// if there is none.
RowResult run_row_in_a_process(const std::vector<std::string>& arguments);

}  // namespace sailor::bench
