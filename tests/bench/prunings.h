// The savings of each pruning of the search: the paper's table 3, for every pruning, compared with the
// paper's values.
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

// A row per pruning of feature_names(), and one for all of them together: CPU time, amount of search, and
// whether the result is the same. `with` are the results with all prunings, in the order of `scenarios`.
// Writes lines as they are ready; returns whether every result in time is the same.
bool print_prunings(const std::vector<Scenario>& scenarios, const std::vector<RowResult>& with,
                    const RowRunner& run, const std::function<void(const std::string&)>& print);

// A measured row of the paper's table 3: the same search without any pruning, with all, and with all under a
// budget.
struct PruningRow {
  int types = 0, gpus = 0;  // GPU types, GPUs of each
  std::string model;
  RowResult bare, all;
  std::optional<RowResult> limited;
  double max_usd = 0;           // of `limited`
  std::string published, note;  // what the paper says
};
// The rows of paper_numbers.csv at `path` for the scenarios; empty if the file does not exist.
std::vector<PruningRow> measure_table_3(const std::string& path, const std::vector<Scenario>& scenarios,
                                        const std::vector<RowResult>& with, const RowRunner& run);
// "0.123", with ">" before it if the search did not finish.
std::string search_seconds(const RowResult& row);
// One line per row.
void print_table_3(const std::vector<PruningRow>& rows, const std::function<void(const std::string&)>& print);

}  // namespace sailor::bench
