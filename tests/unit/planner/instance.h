// A small planning problem that owns all its inputs, for tests: uniform links, made-up GPU types.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "planner/simulator/simulate.h"

namespace sailor::test {

// In [low, high).
inline double uniform(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
}

struct Instance {
  JobSpec job;
  Snapshot snapshot;
  Catalog catalog;
  ProfileSet profiles;

  PlanningContext context() const { return {job, snapshot, catalog, profiles}; }

  void add_node(const std::string& name, const std::string& type, int gpus, const std::string& zone = "z1") {
    SnapshotNode node;
    node.name = name;
    node.partition = "p-" + type;
    node.zone = zone;
    node.region = "r1";
    node.gpu_type = type;
    node.gpus = gpus;
    for (int i = 0; i < gpus; ++i) node.free_gpus.push_back(i);
    snapshot.nodes.push_back(node);
  }

  // A type whose block takes `block_s` per microbatch of one sequence at TP degree 1 (a third of it forward).
  void add_type(const std::string& name, double block_s, int64_t memory_bytes, double usd_per_hour,
                const std::vector<int>& microbatches = {1, 2}, const std::vector<int>& tps = {1, 2}) {
    GpuType type;
    type.name = name;
    type.memory_bytes = memory_bytes;
    type.usd_per_hour = usd_per_hour;
    catalog.gpu_types[name] = type;
    LayerProfile profile;
    profile.gpu_type = name;
    for (int mb : microbatches)
      for (int tp : tps) {
        LayerProfile::Cell cell(job.model.num_all_layers());
        for (size_t layer = 0; layer < cell.size(); ++layer) {
          const double share = layer == 0 ? 0.2 : layer + 1 == cell.size() ? 1.3 : 1.0;
          const double s = block_s * share * (0.3 + 0.7 * mb) * (0.2 + 0.8 / tp);
          cell[layer] = {s / 3, 2 * s / 3, block_s * 0.05 / tp};
        }
        profile.cells[{mb, {tp}}] = cell;
      }
    profiles.layers[name] = profile;
  }

  // One curve for every pair: latency and bandwidth.
  void set_network(double latency_s, double bytes_per_s) {
    profiles.network = {};
    profiles.network.add({{"", "", 0},
                          {"", "", 0},
                          NetworkProfile::Scope::any,
                          LinkCurve::from_points({{1000, latency_s + 1000 / bytes_per_s},
                                                  {1e9, latency_s + 1e9 / bytes_per_s}})});
  }
  void set_network(const LinkCurve& inside_nodes, const LinkCurve& between_nodes) {
    const LinkEnd any{"", "", 0};
    profiles.network = {};
    profiles.network.add({any, any, NetworkProfile::Scope::intra_node, inside_nodes});
    profiles.network.add({any, any, NetworkProfile::Scope::inter_node, between_nodes});
  }
};

inline Instance empty_instance(int blocks, int64_t global_batch) {
  Instance in;
  in.job.file = "job.yaml";
  in.job.model.name = "test";
  in.job.model.family = "test";
  in.job.model.layers = blocks;
  in.job.model.hidden = 64;
  in.job.model.heads = 4;
  in.job.model.feed_forward = 256;
  in.job.model.sequence = 128;
  in.job.model.vocabulary = 256;
  in.job.training.global_batch = global_batch;
  in.job.training.steps = 10;
  for (int tp : {1, 2, 4}) {
    std::vector<LayerSizes> sizes(in.job.model.num_all_layers());
    for (auto& layer : sizes) {
      layer.parameters = 1'000'000 / tp;
      layer.output_elements = 100'000;
      layer.activation_bytes = 4'000'000 / tp;
      layer.workspace_bytes = 0;
    }
    in.profiles.sizes.by_shape[{tp}] = sizes;
  }
  in.set_network(1e-5, 1e9);
  return in;
}

// One or two types, at most five GPUs, everything random.
inline Instance random_instance(uint64_t seed, int64_t base_memory_bytes) {
  std::mt19937_64 random(seed);
  Instance in = empty_instance(1 + static_cast<int>(random() % 4), 4 + static_cast<int64_t>(random() % 9));
  const int types = 1 + static_cast<int>(random() % 2);
  int gpus = 5;
  for (int t = 0; t < types; ++t) {
    const std::string name = t == 0 ? "fast" : "slow";
    in.add_type(name, uniform(random, 0.01, 0.05) * (t + 1),
                base_memory_bytes + static_cast<int64_t>(uniform(random, 2e7, 2e8)), uniform(random, 1, 4));
    int of_type = t + 1 < types ? 1 + static_cast<int>(random() % 4) : gpus;
    gpus -= of_type;
    for (int node = 0; of_type > 0; ++node) {
      const int here = std::min(of_type, 1 + static_cast<int>(random() % 4));
      in.add_node(name + std::to_string(node), name, here);
      of_type -= here;
    }
  }
  in.set_network(uniform(random, 1e-5, 1e-3), uniform(random, 1e8, 1e10));
  return in;
}

// A plan of `pipelines` equal pipelines: stages as {first layer, end layer, type, tp}.
struct StageSpec {
  int first, end;
  std::string type;
  int tp;
};
inline Plan make_plan(const Instance& in, int microbatch,
                      const std::vector<std::vector<StageSpec>>& pipelines) {
  Plan plan;
  plan.model = in.job.model.name;
  plan.global_batch = in.job.training.global_batch;
  plan.microbatch = microbatch;
  const auto shares =
      share_microbatches(num_microbatches(plan.global_batch, microbatch), static_cast<int>(pipelines.size()));
  for (size_t j = 0; j < pipelines.size(); ++j) {
    PlanPipeline pipeline;
    pipeline.microbatches = shares[j];
    for (const StageSpec& s : pipelines[j]) {
      PlanStage stage;
      stage.first_layer = s.first;
      stage.end_layer = s.end;
      stage.gpu_type = s.type;
      stage.zone = "z1";
      stage.shape.tp = s.tp;
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(pipeline);
  }
  return plan;
}

}  // namespace sailor::test
