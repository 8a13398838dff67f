// The sections of the evaluation, each from new runs: ours compared with the paper, the published planner and
// other planners. Where ours is worse, the same table shows it. They plan through the study, so what two
// sections need is planned once. Throw InputError.
#pragma once

#include "tests/bench/evaluation/section.h"
#include "tests/bench/evaluation/study.h"

namespace sailor::bench {

Section figure_1(Study& study);            // the gain of more GPUs, by type and zone
Section simulator_accuracy(Study& study);  // figures 5 and 6
Section homogeneous(Study& study);         // figure 7
Section mixed_types(Study& study);         // figures 8 and 9
Section mixed_types_small(Study& study);   // figure 10
Section four_zones(Study& study);          // figure 11
Section five_zones(Study& study);          // figure 12
Section limits_of_users(Study& study);     // both scenarios with a limit
Section search_times(Study& study);        // tables 1 to 3
Section scaling(Study& study);             // in GPUs, types and zones
Section reconfiguration(Study& study);
Section takeaways(Study& study);
// Summary of the results; the other sections must come first.
Section summary(const Study& study, double took_s);

}  // namespace sailor::bench
