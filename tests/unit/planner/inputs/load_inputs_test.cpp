// What is chosen by the GPU types of a cluster: the trainer's ranks, and what is said of types that lack a
// precision.
#include "planner/inputs/load_inputs.h"

#include <gmock/gmock.h>

namespace sailor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kJob =
    "model: {family: llama, layers: 4, hidden: 1024, heads: 8, feed_forward: 4096, sequence: 512, "
    "vocabulary: "
    "32000}\n"
    "training: {global_batch: 64, steps: 10, precision: ";

Snapshot nodes_of(const std::vector<std::string>& types) {
  std::string yaml = "sailor_snapshot: 1\nnodes:\n";
  for (const std::string& type : types)
    yaml += "  - {name: n-" + type + ", zone: z, gpu_type: " + type + ", gpus: 8}\n";
  return parse_snapshot(yaml, "cluster.yaml");
}

PlanningInputs inputs_of(const std::string& precision, const std::vector<std::string>& types) {
  const SiteConfig site = parse_site_config("sailor_site: 1\n", "/etc/sailor/sailor.yaml");
  return load_inputs(parse_job_spec(kJob + precision + "}\n", "job.yaml"), site, {},
                     [&](const SiteConfig&) { return nodes_of(types); });
}

TEST(LoadInputs, GpusCommunicateOverNcclAndProcessorsOverSockets) {
  EXPECT_EQ(inputs_of("bf16", {"A100-80", "H100-80"}).framework.name, "sailor-nccl");
  EXPECT_EQ(inputs_of("bf16", {"A100-80", "cpu"}).framework.name, "sailor");
}

TEST(LoadInputs, WithoutNodesAPlansTypesDecide) {
  const auto framework_of_plan = [](const std::set<std::string>& types) {
    const SiteConfig site = parse_site_config("sailor_site: 1\n", "/etc/sailor/sailor.yaml");
    return load_inputs(
               parse_job_spec(kJob + std::string("bf16}\n"), "job.yaml"), site, {},
               [](const SiteConfig&) { return Snapshot{}; }, types)
        .framework.name;
  };
  EXPECT_EQ(framework_of_plan({"A100-80"}), "sailor-nccl");
  EXPECT_EQ(framework_of_plan({"cpu"}), "sailor");
  EXPECT_EQ(framework_of_plan({"A100-80", "unknown"}), "sailor-nccl");
}

TEST(LoadInputs, ATypeWithoutThePrecisionIsNotOfferedAndANoteSaysWhy) {
  const PlanningInputs bf16 = inputs_of("bf16", {"A100-80", "V100-32"});
  EXPECT_FALSE(bf16.profiles.layers.contains("V100-32"));
  EXPECT_THAT(bf16.notes,
              Contains("8 free GPUs of type V100-32 cannot be used: its matrix units have no bf16, "
                       "only fp32 and fp16 (training.precision)"));
  const PlanningInputs fp16 = inputs_of("fp16", {"A100-80", "V100-32"});
  EXPECT_TRUE(fp16.profiles.layers.contains("V100-32"));
  EXPECT_THAT(fp16.notes, Not(Contains(HasSubstr("cannot be used"))));
}

TEST(LoadInputs, UnlikeNodesAreAssumedToHaveTheWorseCardsOfTheTwo) {
  const NetworkProfile network = inputs_of("fp16", {"H100-80", "A100-80"}).profiles.network;
  const auto time_s = [&](const std::string& a, const std::string& b, double senders) {
    return network.find({a, "z", 1}, {b, "z", 1}, false)->time_s(1e12, senders);
  };
  EXPECT_NEAR(time_s("H100-80", "H100-80", 1), 1e12 / 50e9, 1e-3);
  EXPECT_NEAR(time_s("H100-80", "H100-80", 8), 1e12 / 50e9, 1e-3);
  EXPECT_NEAR(time_s("H100-80", "A100-80", 8), 1e12 / 25e9, 1e-3);
  EXPECT_NEAR(time_s("A100-80", "H100-80", 8), 1e12 / 25e9, 1e-3);
}

}  // namespace
}  // namespace sailor
