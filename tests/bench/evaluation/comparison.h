// Scenarios with a row for our planner and one for each other, and pictures of the same: common parts of
// figures 7 to 12 and the scenarios with limits.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/evaluation/section.h"
#include "tests/bench/evaluation/study.h"

namespace sailor::bench {

// Adds the table `name` and its pictures (`name`-throughput, `name`-cost) to the section.
void compare(Study& study, Section& section, const std::string& name,
             const std::vector<const Scenario*>& scenarios);

// Our ratios to the named planners on the scenarios (by default all but the published one and the best
// known).
struct Ratios {
  std::vector<PublishedTable::Ours> counted;
  std::vector<PublishedTable::Ours> noted;  // not counted, see Against::noted
};
enum class Ratio { throughput, cost };
Ratios ratios_to(Study& study, const std::vector<const Scenario*>& scenarios, Ratio of,
                 const std::string& planner = "");

// Adds the paper's value to the table, with a note if only uncounted values correspond to it.
void add_published(PublishedTable& table, const std::string& what, double published, const Ratios& ours);

}  // namespace sailor::bench
