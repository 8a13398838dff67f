// One row of a scenarios file (the columns of the reference pack's targets.csv): a model, a cluster, an
// objective, limits, and the results of others on it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"

namespace sailor::bench {

struct PoolSize {
  int gpus = 0;
  std::string gpu_type;
  std::string zone;
};

// A result in the file: a number, "none" (proven that there is no plan), or empty (unknown).
struct Reached {
  bool none = false;
  std::optional<double> iter_per_s;
  std::optional<double> usd_per_iter;
};

struct Scenario {
  std::string name;
  std::string model;
  Objective objective = Objective::throughput;
  std::optional<double> max_usd;
  std::optional<double> min_iter_per_s;
  std::vector<PoolSize> pools;
  std::optional<double> ref_cpu_s;
  Reached ref, known;
  std::string ref_note;
};

// One row of a CSV file: its cells by column name.
struct CsvRow {
  std::map<std::string, std::string> cells;
  Where where;

  std::string text(const std::string& column) const;  // empty if there is no such cell
  std::optional<double> number(
      const std::string& column) const;  // nothing for "" and "none"; throws InputError
};
std::vector<CsvRow> read_csv(const std::string& path);        // throws InputError; empty lines are skipped
std::vector<std::string> split_csv(const std::string& line);  // quoted fields may hold commas

// Throws InputError with file:line.
std::vector<Scenario> load_scenarios(const std::string& path);
// "32 A100-40 @us-central1-a + 8 V100-16 @us-west1-b"
std::vector<PoolSize> parse_pools(const std::string& text, const std::string& file, int line);

}  // namespace sailor::bench
