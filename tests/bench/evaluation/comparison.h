// Scenarios with a row for us and one for everybody else, and pictures of the same. What figures 7 to 12 and
// the scenarios with limits have in common.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/evaluation/section.h"
#include "tests/bench/evaluation/study.h"

namespace sailor::bench {

// Adds the table `name` and its pictures (`name`-throughput, `name`-cost) to the section.
void compare(Study& study, Section& section, const std::string& name,
             const std::vector<const Scenario*>& scenarios);

// By how much we are better than the planners named on the scenarios (all but the published one and the best
// known where none is named).
struct Ratios {
  std::vector<PublishedTable::Ours> counted;
  std::vector<PublishedTable::Ours> noted;  // not counted, see Against::noted
};
enum class Ratio { throughput, cost };
Ratios ratios_to(Study& study, const std::vector<const Scenario*>& scenarios, Ratio of,
                 const std::string& planner = "");

// Adds the paper's figure to the table; where only figures that do not count stand against it, says so.
void add_published(PublishedTable& table, const std::string& what, double published, const Ratios& ours);

}  // namespace sailor::bench
