// Shared by the sections of the evaluation: the scenarios (those of the reference data pack, and further
// clusters of the paper), the results of others on them, and our plans, each made once. Everything is planned
// and scored under the published cost model and search space. Not thread-safe.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/bench/baselines.h"
#include "tests/bench/evaluation/published.h"
#include "tests/bench/reference_data.h"
#include "tests/bench/row.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

struct StudyOptions {
  std::string reference;        // the data pack
  std::string clusters;         // further scenarios, in the format of the data pack's targets.csv
  std::string assumptions;      // catalog, platforms, calibration of the simulator
  std::string reconfiguration;  // measured reconfigurations (tests/chaos.sh); empty = none
  double time_limit_s = 5;      // per search
  double cell_limit_s = 10;     // per search without prunings
  int most_gpus = std::numeric_limits<int>::max();  // larger scenarios are skipped
};

class Study {
 public:
  explicit Study(StudyOptions options);  // throws InputError

  const StudyOptions& options() const { return options_; }
  // Scenarios whose names begin with `prefix`, in the order of the files; without those that are too large.
  std::vector<const Scenario*> scenarios(const std::string& prefix) const;
  const Scenario* scenario(const std::string& name) const;  // nullptr: unknown, or too large
  int left_out() const { return left_out_; }

  Inputs inputs(const Scenario& scenario) const { return data_.inputs(scenario); }
  const RowResult& plan(const Scenario& scenario);
  RowResult plan_without(const Scenario& scenario, const std::set<std::string>& prunings) const;

  // The published planner, the best known plan, and the other planners that were run on the scenario.
  std::vector<Baseline> others(const Scenario& scenario) const;
  std::vector<PublishedNumber> published(const std::string& where) const;
  std::string published_file() const { return options_.reference + "/paper_numbers.csv"; }
  std::set<std::string> planners() const;  // names of the other planners

  // Counts the values of a table for the summary.
  void count(const PublishedTable& table);
  int published_compared() const { return compared_; }
  int published_reached() const { return reached_; }
  int published_partly() const { return partly_; }

  // All results, by name.
  const std::map<std::string, RowResult>& planned() const { return planned_; }

 private:
  StudyOptions options_;
  ReferenceData data_;
  std::vector<Scenario> scenarios_;
  std::vector<Baseline> baselines_;
  std::vector<PublishedNumber> numbers_;
  std::map<std::string, RowResult> planned_;
  int left_out_ = 0;
  int compared_ = 0, reached_ = 0, partly_ = 0;
};

inline constexpr const char* kPublishedPlanner = "Sailor, published";
inline constexpr const char* kBestKnown = "best plan known";

// Throughput of ours relative to theirs, and their cost relative to ours: above 1, ours is better. 0 if one
// has no plan.
double faster_by(const RowResult& ours, const Baseline& theirs);
double cheaper_by(const RowResult& ours, const Baseline& theirs);
// "32 TYPE + 16 OTHER in 2 zones"
std::string gpus_used(const Plan& plan);
int num_gpus(const Scenario& scenario);

}  // namespace sailor::bench
