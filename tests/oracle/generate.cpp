#include "tests/oracle/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/oracle/random.h"

namespace sailor::oracle {
namespace {

const std::vector<int> kDegrees = {1, 2, 4};

class Generator {
 public:
  Generator(uint64_t seed, const Limits& limits) : random_(seed), limits_(limits) {}

  Problem run() {
    shape();
    cluster();
    sizes();
    times();
    memory();
    prices();
    links();
    quotas();
    return std::move(problem_);
  }

 private:
  // The larger problems are the harder ones.
  int most_or_less(int most) { return random_.chance(0.5) ? most : random_.integer(1, most); }

  void shape() {
    const int most = std::max(3, limits_.layers);
    problem_.layers =
        random_.chance(0.5) ? random_.integer(std::max(3, most - 1), most) : random_.integer(3, most);
    problem_.global_batch = random_.integer(4, 32);
    if (random_.chance(0.5)) problem_.global_batch = problem_.global_batch / 4 * 4;
    problem_.reference_files = random_.chance(0.5);
    equal_blocks_ = !problem_.reference_files || random_.chance(0.3);
  }

  void cluster() {
    const int types = most_or_less(limits_.types), zones = most_or_less(limits_.zones);
    for (int t = 0; t < types; ++t) {
      TypeOfGpu type;
      type.name = fmt::format("type-{}", static_cast<char>('a' + t));
      problem_.types.push_back(type);
    }
    const bool one_region = random_.chance(0.5);
    for (int z = 0; z < zones; ++z) {
      const int region = one_region || z == 0 ? 0 : random_.integer(0, z);
      problem_.zones.push_back({fmt::format("zone-{}", z + 1), region});
    }
    int left = random_.chance(0.7) ? random_.integer(std::max(1, limits_.gpus * 3 / 4), limits_.gpus)
                                   : random_.integer(1, limits_.gpus);
    while (left > 0) {
      NodeOfCluster node;
      node.name = fmt::format("node-{:02}", problem_.nodes.size() + 1);
      node.type = random_.integer(0, types - 1);
      node.zone = random_.integer(0, zones - 1);
      node.gpus = random_.pick(kDegrees);
      for (int gpu = 0; gpu < node.gpus; ++gpu)
        if (left > 0 && random_.chance(0.9)) {
          node.free.push_back(gpu);
          --left;
        }
      problem_.nodes.push_back(node);
    }
    random_.shuffle(problem_.nodes);
  }

  void sizes() {
    const double parameters = random_.log_uniform(5e6, 1.5e8), activations = random_.log_uniform(2e6, 1e8),
                 output = random_.log_uniform(3e5, 2e7), shared = random_.uniform(0, 0.3);
    for (int layer = 0; layer < problem_.layers; ++layer) {
      double weight = 1, width = 1, result = 1;
      if (is_end(layer) || !equal_blocks_) {
        weight = random_.log_uniform(0.3, 3);
        width = random_.log_uniform(0.3, 3);
        if (random_.chance(0.3)) result = random_.log_uniform(0.3, 3);
      }
      if (!is_end(layer) && equal_blocks_ && layer > 1) {
        for (int tp : kDegrees) problem_.sizes[tp].push_back(problem_.sizes[tp][1]);
        continue;
      }
      for (int tp : kDegrees)
        problem_.sizes[tp].push_back(
            {static_cast<int64_t>(parameters * weight / tp), static_cast<int64_t>(output * result),
             static_cast<int64_t>(activations * width * (shared + (1 - shared) / tp))});
    }
  }

  void times() {
    const double block_s = random_.log_uniform(2e-3, 0.2), update_share = random_.log_uniform(0.005, 0.2);
    std::vector<double> weight(problem_.layers, 1);  // against a block
    for (int layer = 0; layer < problem_.layers; ++layer)
      if (is_end(layer) || !equal_blocks_) weight[layer] = random_.log_uniform(0.2, 3);
    std::set<int> microbatches;
    for (int n = random_.integer(1, 3); n > 0; --n) {
      const int microbatch = 1 << random_.integer(0, 3);
      if (microbatch <= problem_.global_batch) microbatches.insert(microbatch);
    }
    if (microbatches.empty()) microbatches.insert(1);
    const bool alike = random_.chance(0.25);
    for (TypeOfGpu& type : problem_.types) {
      const double speed = alike ? random_.uniform(0.97, 1.03) : random_.log_uniform(1, 6),
                   fixed = random_.uniform(0, 0.6), serial = random_.uniform(0.02, 0.5);
      // What the type is good at: the ends need not be slower by the same factor as the blocks.
      const double of_ends = random_.chance(0.3) ? random_.log_uniform(0.5, 2) : 1;
      for (int microbatch : microbatches)
        for (int tp : kDegrees) {
          if (random_.chance(0.12)) continue;  // not profiled
          const double noise = random_.uniform(0.95, 1.05), forward = random_.uniform(0.28, 0.38);
          std::vector<LayerTime>& cell = type.times[{microbatch, tp}];
          for (int layer = 0; layer < problem_.layers; ++layer) {
            const double s = block_s * speed * weight[layer] * (is_end(layer) ? of_ends : 1) * noise *
                             (fixed + (1 - fixed) * microbatch) * (serial + (1 - serial) / tp);
            cell.push_back(
                {s * forward, s * (1 - forward), block_s * speed * weight[layer] * update_share / tp});
          }
        }
      if (type.times.empty() || (random_.chance(0.97) && !type.times.contains({*microbatches.begin(), 1})))
        type.times[{*microbatches.begin(), 1}] = plain_cell(block_s * speed, weight);
    }
  }

  std::vector<LayerTime> plain_cell(double block_s, const std::vector<double>& weight) const {
    std::vector<LayerTime> cell;
    for (double w : weight) cell.push_back({block_s * w / 3, block_s * w * 2 / 3, block_s * w * 0.05});
    return cell;
  }

  // Capacities against what the whole model with one microbatch in flight needs.
  void memory() {
    double need = 0;
    for (const LayerSize& layer : problem_.sizes[1])
      need +=
          24.0 * static_cast<double>(layer.parameters) + 4.0 * static_cast<double>(layer.activation_elements);
    const bool roomy = random_.chance(0.3);
    for (TypeOfGpu& type : problem_.types) {
      const double share = roomy ? random_.uniform(1.5, 8) : random_.log_uniform(0.15, 2);
      type.memory_bytes = static_cast<int64_t>(2e9 + share * need + (random_.chance(0.7) ? 1e9 : 0));
    }
  }

  void prices() {
    const bool by_zone = random_.chance(0.5);
    for (size_t t = 0; t < problem_.types.size(); ++t) {
      const double price = random_.log_uniform(0.3, 5);
      problem_.usd_per_hour.emplace_back();
      for (size_t z = 0; z < problem_.zones.size(); ++z)
        problem_.usd_per_hour[t].push_back(by_zone ? price * random_.uniform(0.7, 1.3) : price);
    }
    const double within = random_.chance(0.5) ? random_.uniform(0, 0.02) : 0,
                 across = random_.uniform(0.01, 0.15);
    const bool directed = random_.chance(0.4);
    for (const ZoneOfCluster& from : problem_.zones) {
      problem_.egress_usd_per_gb.emplace_back();
      for (const ZoneOfCluster& to : problem_.zones) {
        const double usd = &from == &to ? 0 : from.region == to.region ? within : across;
        problem_.egress_usd_per_gb.back().push_back(directed ? usd * random_.uniform(0.3, 1.7) : usd);
      }
    }
  }

  // One link's curve at about `gb_per_s` for large messages.
  Curve curve(double gb_per_s, double latency_s) {
    Curve out;
    if (problem_.reference_files) {
      // Positive for all messages of these problems (2^-4.5 to 2^10 MB), and larger messages take longer.
      double a = random_.uniform(-0.005, 0.009), b = random_.uniform(0.105, 0.14),
             c = random_.uniform(1.3, 3);
      if (falling_) {  // best at 2^peak MB, as where large messages find no buffer; 1 there, 0.25 at the
                       // worst
        const double peak = random_.uniform(1, 5), widest = std::max(peak + 4.5, 10 - peak);
        a = -random_.uniform(0.3, 0.75) / (widest * widest);
        b = -2 * a * peak;
        c = 1 + a * peak * peak;
      }
      const double scale = gb_per_s / (a * 64 + b * 8 + c);
      out.fit = {a * scale, b * scale, c * scale};
      return out;
    }
    double rate = gb_per_s * 1e9 * random_.uniform(0.3, 0.6), bytes = 1e5;
    out.points.emplace_back(bytes, latency_s + bytes / rate);
    for (const double next : {3e6, 1e8, 1e9}) {
      rate *= random_.uniform(1, 1.4);
      out.points.emplace_back(next, out.points.back().second + (next - bytes) / rate);
      bytes = next;
    }
    return out;
  }

  void links() {
    const double base = random_.log_uniform(0.5, 60), latency_s = random_.log_uniform(1e-5, 2e-3),
                 near = random_.uniform(0.3, 1), far = random_.log_uniform(0.02, 0.3),
                 more = random_.uniform(0, 0.8), spread = random_.chance(0.5) ? random_.uniform(0, 0.3) : 0;
    const bool one_way = random_.chance(0.3);
    falling_ = random_.chance(0.25);
    std::vector<double> card(problem_.types.size());
    for (double& rate : card) rate = random_.chance(0.5) ? 1 : random_.log_uniform(0.2, 1);
    std::vector<End> ends;
    for (int t = 0; t < static_cast<int>(problem_.types.size()); ++t)
      for (int z = 0; z < static_cast<int>(problem_.zones.size()); ++z)
        for (int tp : kDegrees) ends.push_back({t, z, tp});
    for (const End& from : ends)
      for (const End& to : ends) {
        if (!one_way && to < from) {
          problem_.links[{from, to}] = problem_.links.at({to, from});
          continue;
        }
        double rate = base * std::min(card[from.type], card[to.type]) *
                      (1 + more * (std::min(from.gpus, to.gpus) - 1)) *
                      random_.uniform(1 - spread, 1 + spread);
        if (from.zone != to.zone)
          rate *= problem_.zones[from.zone].region == problem_.zones[to.zone].region ? near : far;
        problem_.links[{from, to}] = curve(rate, latency_s);
      }
  }

  void quotas() {
    if (random_.chance(0.15))
      problem_.types[static_cast<size_t>(random_.integer(0, static_cast<int>(problem_.types.size()) - 1))]
          .max_gpus = random_.integer(1, std::max(1, limits_.gpus / 2));
    if (problem_.zones.size() > 1 && random_.chance(0.05)) problem_.zones.back().wanted = false;
  }

  bool is_end(int layer) const { return layer == 0 || layer == problem_.layers - 1; }

  Random random_;
  Limits limits_;
  Problem problem_;
  bool equal_blocks_ = true;
  bool falling_ = false;  // fits whose rate falls for large messages
};

}  // namespace

Problem generate(uint64_t seed, const Limits& limits) {
  return Generator(seed, limits).run();
}

uint64_t instance_seed(uint64_t seed, int number) {
  // splitmix64: neighbouring numbers and seeds give unlike streams.
  uint64_t z = seed * 0x9e3779b97f4a7c15ULL + static_cast<uint64_t>(number) * 0xbf58476d1ce4e5b9ULL + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace sailor::oracle
