// Clusters of the installed catalog's GPU types, planned without any measurement: a node more, of the same or
// another type, does not make the plan slower by more than what a local search may miss.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"
#include "tests/unit/drawn.h"

namespace sailor {
namespace {

struct NodeType {
  const char* gpu_type;
  int gpus;
};

// Seconds per iteration of the best plan on `nodes[i]` nodes of types[i].
double best_iteration_s(const JobSpec& job, const std::vector<NodeType>& types,
                        const std::vector<int>& nodes) {
  std::string yaml = "sailor_snapshot: 1\nnodes:\n";
  for (size_t i = 0; i < types.size(); ++i)
    if (nodes[i] > 0)
      yaml += fmt::format("  - {{name: n{}, count: {}, zone: z, gpu_type: {}, gpus: {}}}\n", i, nodes[i],
                          types[i].gpu_type, types[i].gpus);
  const PlanningInputs inputs =
      load_inputs(job, SiteConfig{}, {}, [&](const SiteConfig&) { return parse_snapshot(yaml, "cluster"); });
  const SearchResult result = search(inputs.context(), plan_options({}, inputs.site));
  EXPECT_TRUE(result.stats.complete);
  return result.candidates.empty() ? kNever : result.candidates[0].prediction.iteration_s;
}

JobSpec job_of(const std::string& model, int global_batch) {
  return parse_job_spec(
      fmt::format("model: {{{}}}\ntraining: {{global_batch: {}, precision: fp16, steps: 1}}\n"
                  "data: {{train: none}}\n",
                  model, global_batch),
      "job");
}

const char* const kLlama =
    "family: llama, layers: 32, hidden: 4096, heads: 32, kv_heads: 8, feed_forward: 14336, sequence: 8192, "
    "vocabulary: 128256";
const char* const kGpt =
    "family: gpt2, layers: 48, hidden: 1600, heads: 25, sequence: 1024, vocabulary: 50304";

class CatalogClusters : public ::testing::TestWithParam<std::vector<NodeType>> {};

// All clusters of up to two nodes of each type, and each of them with one node more. Of unlike types one
// model (--long properties: both).
TEST_P(CatalogClusters, ANodeMoreIsNeverMuchSlower) {
  constexpr double kMissed = 1.02;
  const std::vector<NodeType>& types = GetParam();
  std::vector<JobSpec> jobs = {job_of(kGpt, 512), job_of(kLlama, 128)};
  if (types.size() > 2 && test::drawn(1) == 1) jobs.pop_back();
  for (const JobSpec& job : jobs) {
    std::map<std::vector<int>, double> known;
    const auto best_s = [&](const std::vector<int>& nodes) {
      const auto [it, is_new] = known.try_emplace(nodes, 0);
      if (is_new) it->second = best_iteration_s(job, types, nodes);
      return it->second;
    };
    std::vector<int> nodes(types.size(), 0);
    for (size_t turn = 0; turn < types.size();) {
      if (nodes[turn] == 2) {
        nodes[turn++] = 0;
        continue;
      }
      ++nodes[turn];
      turn = 0;
      for (size_t more = 0; more < types.size(); ++more) {
        if (nodes[more] == 2) continue;
        std::vector<int> larger = nodes;
        ++larger[more];
        EXPECT_LE(best_s(larger), kMissed * best_s(nodes))
            << job.model.name << " with one more " << types[more].gpu_type << " than "
            << ::testing::PrintToString(nodes);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, CatalogClusters,
    ::testing::Values(std::vector<NodeType>{{"H100-80", 8}, {"A100-80", 8}, {"V100-32", 8}},
                      std::vector<NodeType>{{"H200-141", 8}, {"B200-180", 8}},
                      std::vector<NodeType>{{"L40S-48", 8}, {"RTX-4090", 4}}));

}  // namespace
}  // namespace sailor
