#include "tests/bench/reference_data.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "planner/spec/error.h"

namespace sailor::bench {
namespace {

constexpr int kGpusPerNode = 4;

nlohmann::json read_json(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw InputError({path, 0}, "cannot be read");
  try {
    return nlohmann::json::parse(in);
  } catch (const nlohmann::json::exception& e) {
    throw InputError({path, 0}, e.what());
  }
}

std::string region_of(const std::string& zone) {
  return zone.substr(0, zone.rfind('-'));
}

// Where each model's global batch is written.
const std::map<std::string, std::string>& config_files() {
  static const std::map<std::string, std::string> files = {{"OPT-350", "training_config_opt_350.json"},
                                                           {"GPT-Neo-2.7", "training_config_gpt_neo27.json"}};
  return files;
}

}  // namespace

ReferenceData::ReferenceData(std::string directory) : directory_(std::move(directory)) {
  const auto memory =
      read_json(directory_ + "/configs/gpu_memory_and_constants.json").at("simulator_GPU_MEMORY_GB");
  const auto prices = read_json(directory_ + "/cost/gpu_prices.json").at("simulator_GPU_PRICES");
  catalog_.file = directory_ + "/configs/gpu_memory_and_constants.json";
  for (const auto& [name, gib] : memory.items()) {
    GpuType type;
    type.name = name;
    type.memory_bytes = static_cast<int64_t>(gib.get<double>() * (1 << 30));
    if (prices.contains(name))
      type.usd_per_hour = prices.at(name).begin()->get<double>();  // equal in all zones
    catalog_.gpu_types[name] = type;
  }
  const auto egress = read_json(directory_ + "/cost/communication_cost.json");
  for (const auto& [from, row] : egress.items())
    for (const auto& [to, usd] : row.items()) egress_[from][to] = usd.get<double>();
}

int64_t ReferenceData::global_batch(const std::string& model) const {
  const auto it = config_files().find(model);
  if (it == config_files().end())
    throw InputError("model \"" + model + "\" has no training configuration in the data pack");
  return read_json(directory_ + "/configs/" + it->second).at("global_batch_size").get<int64_t>();
}

Inputs ReferenceData::inputs(const Scenario& scenario) const {
  Inputs out;
  std::set<std::string> types;
  for (const PoolSize& pool : scenario.pools) types.insert(pool.gpu_type);
  out.profiles = load_reference_profiles(directory_, scenario.model, {types.begin(), types.end()},
                                         ReferenceTimes::simulator_copy);
  out.catalog = catalog_;
  out.snapshot = make_snapshot(scenario.pools, kGpusPerNode);
  out.snapshot.egress_usd_per_gb = egress_;
  out.job.file = scenario.name;
  out.job.model.name = scenario.model;
  out.job.model.layers = static_cast<int>(out.profiles.sizes.by_shape.begin()->second.size()) - 2;
  out.job.training.global_batch = global_batch(scenario.model);
  const auto config = read_json(directory_ + "/configs/" + config_files().at(scenario.model));
  out.job.model.heads = config.at("heads").get<int>();
  out.job.model.feed_forward = 4 * config.at("hidden_size").get<int>();
  out.job.objective = scenario.objective;
  out.job.constraints.most[Expense::cost] = scenario.max_usd;
  out.job.constraints.min_iterations_per_s = scenario.min_iter_per_s;
  return out;
}

Snapshot make_snapshot(const std::vector<PoolSize>& pools, int gpus_per_node) {
  Snapshot snapshot;
  snapshot.file = "scenario";
  for (const PoolSize& pool : pools)
    for (int first = 0; first < pool.gpus; first += gpus_per_node) {
      SnapshotNode node;
      node.name = fmt::format("{}-{}-{:04d}", pool.zone, pool.gpu_type, first / gpus_per_node);
      node.partition = pool.zone;
      node.zone = pool.zone;
      node.region = region_of(pool.zone);
      node.gpu_type = pool.gpu_type;
      node.gpus = std::min(gpus_per_node, pool.gpus - first);
      for (int i = 0; i < node.gpus; ++i) node.free_gpus.push_back(i);
      snapshot.nodes.push_back(std::move(node));
    }
  return snapshot;
}

Inputs generate_inputs(uint64_t seed, int types, int zones, int gpus) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random() >> 11) / 9007199254740992.0);
  };
  Inputs out;
  constexpr int kBlocks = 32;
  out.job.model.name = fmt::format("generated-{}", seed);
  out.job.model.layers = kBlocks;
  out.job.training.global_batch = 1024;
  const double block_parameters = uniform(2e7, 8e7);
  const double activation = uniform(1e8, 4e8);
  for (int tp : {1, 2, 4}) {
    std::vector<LayerSizes> sizes(kBlocks + 2);
    for (size_t layer = 0; layer < sizes.size(); ++layer) {
      const double scale = layer == 0 || layer + 1 == sizes.size() ? 1.5 : 1.0;
      sizes[layer].parameters = static_cast<int64_t>(block_parameters * scale / tp);
      sizes[layer].activation_bytes = static_cast<int64_t>(activation * scale * (0.2 + 0.8 / tp));
      sizes[layer].output_elements = 4'000'000;
    }
    out.profiles.sizes.by_shape[{tp}] = sizes;
  }
  std::vector<PoolSize> pools;
  for (int t = 0; t < types; ++t) {
    const std::string name = fmt::format("type{}", t);
    GpuType type;
    type.name = name;
    type.memory_bytes = static_cast<int64_t>(16 + 16 * (random() % 5)) << 30;
    type.usd_per_hour = uniform(1, 10);
    out.catalog.gpu_types[name] = type;
    LayerProfile profile;
    profile.gpu_type = name;
    const double block_s = uniform(0.005, 0.05);
    for (int microbatch : {1, 2, 4, 8})
      for (int tp : {1, 2, 4}) {
        LayerProfile::Cell cell(kBlocks + 2);
        for (size_t layer = 0; layer < cell.size(); ++layer) {
          const double share = layer == 0 ? 0.1 : layer + 1 == cell.size() ? uniform(0.8, 1.6) : 1.0;
          const double s = block_s * share * (0.2 + 0.8 * microbatch) * (0.15 + 0.85 / tp);
          cell[layer] = {s / 3, 2 * s / 3, block_s / 10 / tp};
        }
        profile.cells[{microbatch, {tp}}] = cell;
      }
    out.profiles.layers[name] = profile;
    for (int z = 0; z < zones; ++z)
      pools.push_back({gpus, name, fmt::format("region{}-{}", z % 3, static_cast<char>('a' + z))});
  }
  out.snapshot = make_snapshot(pools, kGpusPerNode);
  for (int a = 0; a < zones; ++a)
    for (int b = 0; b < zones; ++b) {
      const std::string from = fmt::format("region{}-{}", a % 3, static_cast<char>('a' + a));
      const std::string to = fmt::format("region{}-{}", b % 3, static_cast<char>('a' + b));
      const double gb_per_s = a == b ? 3.0 : region_of(from) == region_of(to) ? 2.0 : 0.5;
      out.profiles.network.add(
          {{"", from, 0},
           {"", to, 0},
           NetworkProfile::Scope::any,
           LinkCurve::from_points({{65536, 5e-5 + 65536 / (gb_per_s * 1e9)}, {1e9, 5e-5 + 1 / gb_per_s}})});
      if (a != b) out.snapshot.egress_usd_per_gb[from][to] = region_of(from) == region_of(to) ? 0.01 : 0.02;
    }
  return out;
}

}  // namespace sailor::bench
