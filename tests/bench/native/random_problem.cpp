#include "tests/bench/native/random_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <set>

#include "planner/profile/profile_set.h"
#include "planner/spec/transformer_shape.h"
#include "tests/oracle/random.h"

namespace sailor::bench {
namespace {

using oracle::Random;

// Equally likely in every octave of [low, high], which has more than one number.
int64_t log_integer(Random& random, int64_t low, int64_t high) {
  const auto octave_of = [](int64_t number) { return std::bit_width(static_cast<uint64_t>(number)) - 1; };
  const int last = octave_of(high - 1), octave = random.integer(octave_of(low), last);
  const int64_t from = std::max(low, int64_t{1} << octave),
                to = octave == last ? high : (int64_t{2} << octave) - 1;
  constexpr int kSteps = 1 << 20;
  return from + (to - from) * random.integer(0, kSteps) / kSteps;
}

// Some of the items, in random order.
template <typename T>
std::vector<T> some(Random& random, std::vector<T> items, int count) {
  random.shuffle(items);
  items.resize(std::min(items.size(), static_cast<size_t>(count)));
  return items;
}

// --- The cluster

// Free GPUs of one type in one zone.
struct Pool {
  std::string type, zone;
  int gpus = 0;
};

std::vector<std::string> usable_types(const Catalog& catalog) {
  std::vector<std::string> types;
  for (const auto& [name, type] : catalog.gpu_types)
    if (!type.emulation && type.flops(Precision::fp16) && type.memory_bandwidth_bytes_per_s > 0)
      types.push_back(name);
  if (types.empty()) throw InputError({catalog.file, 0}, "no GPU type whose times can be estimated");
  return types;
}

std::vector<Pool> draw_pools(Random& random, const Catalog& catalog, const ProblemLimits& limits) {
  int gpus = static_cast<int>(limits.gpus > 8 ? log_integer(random, 8, limits.gpus) : 8);
  if (gpus > 16 && random.chance(0.8)) gpus -= gpus % 8;
  const std::vector<std::string> types =
      some(random, usable_types(catalog), random.integer(1, std::min(limits.types, gpus / 8 + 1)));
  const int zones = random.integer(1, std::min(limits.zones, gpus / 8 + 1));
  std::vector<Pool> pools;
  for (const std::string& type : types) {
    const int home = random.integer(0, zones - 1);  // every type is somewhere, every zone has some type
    for (int z = 0; z < zones; ++z)
      if (z == home || &type == &types.front() || random.chance(0.5))
        pools.push_back({type, fmt::format("z{}", z + 1), 0});
  }
  // Whole nodes of eight as far as they go; the first pool has the rest.
  std::vector<int> weights;
  int sum = 0;
  for (size_t i = 0; i < pools.size(); ++i) sum += weights.emplace_back(random.integer(1, 8));
  int left = gpus;
  for (size_t i = 0; i < pools.size(); ++i) {
    const int share = gpus * weights[i] / sum;
    pools[i].gpus = share >= 8 ? share - share % 8 : share;
    left -= pools[i].gpus;
  }
  pools[0].gpus += left;
  std::erase_if(pools, [](const Pool& pool) { return pool.gpus == 0; });
  return pools;
}

Snapshot draw_snapshot(Random& random, const std::vector<Pool>& pools) {
  Snapshot snapshot;
  snapshot.file = "generated";
  const bool one_region = random.chance(0.6), busy = random.chance(0.3);
  std::map<std::string, int> node_gpus;  // by type
  for (const Pool& pool : pools) node_gpus.emplace(pool.type, random.chance(0.75) ? 8 : 4);
  for (const Pool& pool : pools) {
    int left = pool.gpus;
    for (int number = 1; left > 0; ++number) {
      SnapshotNode node;
      node.name = fmt::format("{}-{}-{:03d}", pool.zone, pool.type, number);
      node.zone = pool.zone;
      node.region = one_region ? "r1" : "r" + pool.zone.substr(1);
      node.gpu_type = pool.type;
      node.gpus = node_gpus.at(pool.type);
      int free = std::min(left, node.gpus);
      if (busy && free > 1 && random.chance(0.2)) free = random.integer(1, free - 1);
      std::vector<int> gpus;
      for (int i = 0; i < node.gpus; ++i) gpus.push_back(i);
      node.free_gpus = some(random, gpus, free);
      std::sort(node.free_gpus.begin(), node.free_gpus.end());
      left -= free;
      snapshot.nodes.push_back(std::move(node));
    }
  }
  return snapshot;
}

// --- The network

// Network cards of a node.
struct Cards {
  int gbit_per_s = 0, count = 1;

  int node_gbit_per_s() const { return gbit_per_s * count; }
};

double bytes_per_s(int gbit_per_s) {
  return gbit_per_s * 1e9 / 8;
}

void add_link(NetworkFile& network, const LinkEnd& from, const LinkEnd& to, double latency_s, Cards cards) {
  NetworkFile::Link& link = network.link(from, to, NetworkProfile::Scope::inter_node);
  link.latency_s = latency_s;
  link.bytes_per_s = bytes_per_s(cards.gbit_per_s);
  link.node_bytes_per_s = bytes_per_s(cards.node_gbit_per_s());
}

NetworkFile draw_network(Random& random, const RandomProblem& problem) {
  NetworkFile network;
  network.measured = "generated";
  const std::vector<std::string> types = problem.types(), zones = problem.zones();
  std::map<std::string, Cards> cards;
  for (const std::string& type : types) {
    static const std::vector<Cards> kinds = {{25, 1},  {50, 1},  {100, 1}, {200, 1}, {100, 4},
                                             {400, 1}, {200, 4}, {200, 8}, {400, 4}, {400, 8}};
    cards[type] = random.pick(kinds);
  }
  for (const std::string& a : types)
    for (const std::string& b : types) {
      if (b < a) continue;
      Cards slower = cards[a].node_gbit_per_s() <= cards[b].node_gbit_per_s() ? cards[a] : cards[b];
      slower.gbit_per_s = std::min(cards[a].gbit_per_s, cards[b].gbit_per_s);
      if (a != b && random.chance(0.25)) slower = {25, 1};  // no common fabric
      add_link(network, {a, "", 0}, {b, "", 0}, 1e-6 * random.integer(3, 30), slower);
    }
  std::map<std::string, std::string> region;
  for (const SnapshotNode& node : problem.inputs.snapshot.nodes) region[node.zone] = node.region;
  for (const std::string& a : zones)
    for (const std::string& b : zones) {
      if (b <= a) continue;
      const bool near = region[a] == region[b];
      static const std::vector<int> near_gbit = {10, 25, 50, 100}, far_gbit = {1, 2, 5, 10};
      const int gbit = random.pick(near ? near_gbit : far_gbit);
      const double latency_s = 1e-6 * (near ? random.integer(50, 500) : random.integer(5'000, 40'000));
      for (const std::string& type : types)
        for (const std::string& other : types)
          add_link(network, {type, a, 0}, {other, b, 0}, latency_s, {gbit, 1});
    }
  return network;
}

// --- The job

// `layers` blocks of a model of about `parameters`; nothing when no usual depth gives that.
std::string model_yaml(Random& random, int64_t parameters) {
  const bool llama = random.chance(0.6);
  struct Kind {
    int hidden, layers;
  };
  static const std::vector<int> widths = {768,  1024, 1280, 1536, 1600, 2048, 2560,
                                          3072, 4096, 5120, 6144, 7168, 8192};
  static const std::vector<int> llama_vocabularies = {32000, 128256}, gpt_vocabularies = {50257, 50304};
  const int vocabulary = random.pick(llama ? llama_vocabularies : gpt_vocabularies);
  const bool wide_mlp = llama && random.chance(0.5), round = random.chance(0.7);
  const auto feed_forward = [&](int hidden) {
    if (!llama) return 4 * hidden;
    return wide_mlp ? hidden * 7 / 2 : (hidden * 8 / 3 + 255) / 256 * 256;
  };
  std::vector<Kind> usual;
  Kind nearest{768, 12};
  for (int hidden : widths) {
    const int64_t h = hidden, block = 4 * h * h + (llama ? 3 : 2) * h * feed_forward(hidden);
    const int64_t rest = parameters - int64_t{vocabulary} * h * (llama ? 2 : 1);
    int layers = static_cast<int>(rest / block);
    if (round) layers -= layers % 4;
    if (layers < 8 || layers > 100) continue;
    nearest = {hidden, layers};
    if (layers >= hidden / 170 && layers <= hidden / (hidden <= 1600 ? 32 : 64)) usual.push_back(nearest);
  }
  const Kind kind = usual.empty() ? nearest : random.pick(usual);
  const int heads = kind.hidden >= 2048 && kind.hidden % 128 == 0 ? kind.hidden / 128 : kind.hidden / 64;
  static const std::vector<int> gpt_sequences = {1024, 1024, 2048},
                                llama_sequences = {2048, 4096, 4096, 8192};
  const int sequence = random.pick(llama ? llama_sequences : gpt_sequences);
  std::string out = fmt::format(
      "model: {{family: {}, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, vocabulary: "
      "{}",
      llama ? "llama" : "gpt2", kind.layers, kind.hidden, heads, feed_forward(kind.hidden), sequence,
      vocabulary);
  if (llama && heads % 8 == 0 && random.chance(0.6)) out += ", kv_heads: 8";
  if (!llama) out += ", tied_embeddings: true";
  return out + "}\n";
}

// Parameters that all GPUs together hold with room for activations.
int64_t most_parameters(const RandomProblem& problem) {
  constexpr int64_t kStateBytes = 18, kPartPercent = 45;
  int64_t bytes = 0;
  for (const SnapshotNode& node : problem.inputs.snapshot.nodes)
    bytes +=
        static_cast<int64_t>(node.free_gpus.size()) * problem.inputs.catalog.at(node.gpu_type).memory_bytes;
  return bytes / 100 * kPartPercent / kStateBytes;
}

std::string draw_job(Random& random, const RandomProblem& problem) {
  constexpr int64_t kSmallest = 125'000'000, kLargest = 70'000'000'000;
  const int64_t most = std::clamp(most_parameters(problem), kSmallest, kLargest);
  const std::string model = model_yaml(random, log_integer(random, kSmallest, most));
  int64_t batch = log_integer(random, 64, 2048);
  if (random.chance(0.8)) batch -= batch % 16;
  return model + fmt::format("training: {{global_batch: {}, precision: fp16, steps: 1000}}\n",
                             std::max<int64_t>(64, batch));
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

std::vector<std::string> of_free_gpus(const Snapshot& snapshot, std::string SnapshotNode::*what) {
  std::set<std::string> names;
  for (const SnapshotNode& node : snapshot.nodes)
    if (!node.free_gpus.empty()) names.insert(node.*what);
  return {names.begin(), names.end()};
}

}  // namespace

int RandomProblem::gpus() const {
  size_t sum = 0;
  for (const SnapshotNode& node : inputs.snapshot.nodes) sum += node.free_gpus.size();
  return static_cast<int>(sum);
}

std::vector<std::string> RandomProblem::types() const {
  return of_free_gpus(inputs.snapshot, &SnapshotNode::gpu_type);
}

std::vector<std::string> RandomProblem::zones() const {
  return of_free_gpus(inputs.snapshot, &SnapshotNode::zone);
}

RandomProblem random_problem(const Catalog& catalog, uint64_t seed, int number, const ProblemLimits& limits) {
  // Neighbouring seeds and numbers give unrelated problems.
  Random random(seed * 0x9E3779B97F4A7C15u ^ static_cast<uint64_t>(number) * 0xD1B54A32D192ED03u);
  RandomProblem problem;
  problem.inputs.catalog = catalog;
  problem.inputs.snapshot = draw_snapshot(random, draw_pools(random, catalog, limits));
  problem.network = draw_network(random, problem);
  problem.job_yaml = draw_job(random, problem);
  problem.inputs.job = parse_job_spec(problem.job_yaml, "job.yaml");
  problem.inputs.framework = own_framework(Ranks::gpus);
  problem.inputs.profiles = load_profiles({}, problem.inputs.job, catalog, problem.inputs.framework);
  NetworkProfile& links = problem.inputs.profiles.network;
  if (limits.drawn_links)
    links.add(to_profile(problem.network));
  else
    problem.network.links.clear();
  for (const SnapshotNode& node : problem.inputs.snapshot.nodes) links.set_region(node.zone, node.region);
  return problem;
}

void dump_problem(const RandomProblem& problem, const std::string& directory) {
  const std::filesystem::path to(directory);
  write(to / "job.yaml", problem.job_yaml);
  write(to / "cluster.yaml", to_yaml(problem.inputs.snapshot));
  write(to / "profiles/network.json", to_json(problem.network) + "\n");
  write(to / "sailor.yaml", fmt::format("sailor_site: 1\ncatalog: {}\nprofiles: [profiles]\n",
                                        std::filesystem::absolute(problem.inputs.catalog.file).string()));
}

}  // namespace sailor::bench
