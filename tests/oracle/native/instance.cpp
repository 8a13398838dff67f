#include "tests/oracle/native/instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "planner/spec/error.h"
#include "tests/oracle/generate.h"
#include "tests/oracle/random.h"

namespace sailor::oracle {
namespace {

class Generator {
 public:
  Generator(const Catalog& catalog, uint64_t seed, const NativeLimits& limits)
      : catalog_(catalog), random_(seed), limits_(limits) {}

  PlannerInputs run() {
    types();
    nodes();
    job();
    if (random_.chance(0.5)) out_.framework = own_framework(Ranks::gpus);
    out_.profiles = load_profiles({}, out_.job, out_.catalog, out_.framework);
    microbatches();
    links();
    memory();
    return std::move(out_);
  }

 private:
  void types() {
    std::vector<std::string> all;
    for (const auto& [name, type] : catalog_.gpu_types)
      if (!type.emulation && type.flops(Precision::fp16) && type.memory_bandwidth_bytes_per_s > 0)
        all.push_back(name);
    if (all.empty()) throw InputError({catalog_.file, 0}, "no GPU type whose times can be estimated");
    random_.shuffle(all);
    all.resize(std::min(all.size(), static_cast<size_t>(random_.integer(1, limits_.types))));
    types_ = all;
    out_.catalog.file = catalog_.file;
    out_.catalog.links = catalog_.links;
    for (const std::string& type : types_) out_.catalog.gpu_types[type] = catalog_.at(type);
  }

  void nodes() {
    const bool one_region = random_.chance(0.5), one_size = random_.chance(0.6);
    int left = random_.chance(0.5) ? limits_.gpus : random_.integer(std::min(2, limits_.gpus), limits_.gpus);
    const int zones = random_.integer(1, limits_.zones), size = 1 << random_.integer(left > 5 ? 1 : 0, 2);
    for (int number = 1; left > 0; ++number) {
      SnapshotNode node;
      node.name = fmt::format("n{}", number);
      node.gpu_type = random_.pick(types_);
      node.zone = fmt::format("z{}", random_.integer(1, zones));
      node.region = one_region ? "r" : "r" + node.zone;
      node.gpus = std::min(left, one_size ? size : random_.integer(1, 4));
      for (int gpu = 0; gpu < node.gpus; ++gpu) node.free_gpus.push_back(gpu);
      left -= node.gpus;
      out_.snapshot.nodes.push_back(std::move(node));
    }
    out_.snapshot.file = "generated";
  }

  int gpus() const {
    int sum = 0;
    for (const SnapshotNode& node : out_.snapshot.nodes) sum += node.gpus;
    return sum;
  }

  // More GPUs and more layers together are too many plans.
  int most_blocks() const { return std::max(1, limits_.layers - 2 - (gpus() > 5 ? 2 : gpus() > 3 ? 1 : 0)); }

  void job() {
    static const std::vector<int> widths = {1024, 2048, 4096}, sequences = {512, 1024, 2048},
                                  vocabularies = {8192, 32000};
    const bool llama = random_.chance(0.5);
    const int hidden = random_.pick(widths);
    out_.job = parse_job_spec(
        fmt::format("model: {{family: {}, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, "
                    "vocabulary: {}{}}}\ntraining: {{global_batch: {}, precision: fp16, steps: 10}}\n",
                    llama ? "llama" : "gpt2", random_.integer(1, most_blocks()), hidden, hidden / 128,
                    (llama ? 3 : 4) * hidden, random_.pick(sequences), random_.pick(vocabularies),
                    llama ? "" : ", tied_embeddings: true", random_.integer(4, 16)),
        "job.yaml");
  }

  // Only one or two sizes, of which a few microbatches make up the batch.
  void microbatches() {
    const int most = gpus() > 5 ? 6 : 8;
    std::vector<int> sizes;
    for (const int size : {1, 2, 4, 8})
      if (size <= out_.job.training.global_batch && out_.job.training.global_batch <= most * size)
        sizes.push_back(size);
    random_.shuffle(sizes);
    sizes.resize(std::min<size_t>(sizes.size(), random_.chance(0.5) ? 1 : 2));
    for (auto& [type, profile] : out_.profiles.layers)
      std::erase_if(profile.cells, [&](const auto& cell) {
        return std::find(sizes.begin(), sizes.end(), cell.first.first) == sizes.end();
      });
  }

  void add_link(const LinkEnd& from, const LinkEnd& to, double latency_s, double gbit_per_s, int cards) {
    const double bytes_per_s = gbit_per_s * 1e9 / 8;
    out_.profiles.network.add({from, to, NetworkProfile::Scope::inter_node,
                               LinkCurve::from_rates(latency_s, bytes_per_s, bytes_per_s * cards)});
  }

  void links() {
    for (const std::string& a : types_)
      for (const std::string& b : types_)
        if (a <= b)
          add_link({a, "", 0}, {b, "", 0}, 1e-6 * random_.integer(3, 50), random_.log_uniform(1, 400),
                   1 << random_.integer(0, 2));
    for (const std::string& a : types_)
      for (const std::string& b : types_)
        add_link({a, "z1", 0}, {b, "z2", 0}, 1e-4 * random_.integer(1, 100), random_.log_uniform(0.5, 50), 1);
  }

  // Against an equal part of what the model with one microbatch takes.
  void memory() {
    const std::vector<LayerSizes>& sizes = *out_.profiles.sizes.find({1});
    double need = 0;
    for (const LayerSizes& layer : sizes)
      need += 18.0 * static_cast<double>(layer.parameters) + static_cast<double>(layer.activation_bytes);
    const bool roomy = random_.chance(0.4);
    for (auto& [name, type] : out_.catalog.gpu_types) {
      if (roomy) continue;
      const double part = need / gpus() * random_.log_uniform(1.5, 2 * gpus());
      type.memory_bytes = std::min(type.memory_bytes, type.base_memory_bytes + static_cast<int64_t>(part));
    }
  }

  const Catalog& catalog_;
  Random random_;
  NativeLimits limits_;
  std::vector<std::string> types_;
  PlannerInputs out_;
};

}  // namespace

PlannerInputs native_instance(const Catalog& catalog, uint64_t seed, int number, const NativeLimits& limits) {
  return Generator(catalog, instance_seed(seed, number), limits).run();
}

}  // namespace sailor::oracle
