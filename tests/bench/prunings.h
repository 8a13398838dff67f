// What each pruning of the search saves: the paper's table 3, for every pruning and beside the paper's
// figures.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/row.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

// The result of one scenario without these prunings.
using RowRunner = std::function<RowResult(const Scenario&, const std::set<std::string>& without)>;

// A row per pruning of feature_names(), and one for all of them at once: CPU time, what was looked at, and
// whether the answer is the same. `with` are the results with all prunings on, in the order of `scenarios`.
// Writes lines as they are ready; says whether every answer that came in time is the same.
bool print_prunings(const std::vector<Scenario>& scenarios, const std::vector<RowResult>& with,
                    const RowRunner& run, const std::function<void(const std::string&)>& print);

// A row of the paper's table 3 measured: the same search without any pruning, with all, and with all under
// a budget.
struct PruningRow {
  int types = 0, gpus = 0;  // GPU types, GPUs of each
  std::string model;
  RowResult bare, all;
  std::optional<RowResult> limited;
  double max_usd = 0;           // of `limited`
  std::string published, note;  // what the paper says
};
// The rows of paper_numbers.csv at `path` that the scenarios are about; nothing when the file is not there.
std::vector<PruningRow> measure_table_3(const std::string& path, const std::vector<Scenario>& scenarios,
                                        const std::vector<RowResult>& with, const RowRunner& run);
// "0.123", with ">" before it where the search did not come to its end.
std::string search_seconds(const RowResult& row);
// One line per row.
void print_table_3(const std::vector<PruningRow>& rows, const std::function<void(const std::string&)>& print);

}  // namespace sailor::bench
