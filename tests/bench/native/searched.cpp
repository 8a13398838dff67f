#include "tests/bench/native/searched.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "tests/bench/native/child_process.h"

namespace sailor::bench {
namespace {

size_t nodes_of(const Plan& plan) {
  std::set<std::string> names;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) names.insert(stage.node);
  return names.size();
}

}  // namespace

Searched searched(const Inputs& inputs, const PlanFeatures& allow, const NativeOptions& options) {
  const ChildOutput output = run_in_child([&] {
    PlanOptions of_search = options.effort.options(options.search_effort);
    of_search.allow = allow;
    const double started_s = process_cpu_s();
    const SearchResult found = search(inputs.context(), of_search);
    const double cpu_s = process_cpu_s() - started_s, bound_s = found.bound_iteration_s.value_or(0);
    if (found.candidates.empty()) return fmt::format("0 {} {} 0", bound_s, cpu_s);
    const Candidate& best = found.candidates.front();
    return fmt::format("{} {} {} {}", best.prediction.iteration_s, bound_s, cpu_s, nodes_of(best.plan));
  });
  Searched out;
  std::istringstream(output.text) >> out.iteration_s >> out.bound_s >> out.cpu_s >> out.nodes;
  return out;
}

}  // namespace sailor::bench
