// What must hold of every prediction: better hardware never makes a plan slower, larger or too large. Random
// plans on random clusters under every shipped framework description.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "planner/simulator/assumptions.h"
#include "planner/simulator/native_model.h"
#include "planner/simulator/run_prediction.h"
#include "planner/spec/error.h"
#include "tests/unit/planner/instance.h"

namespace sailor {
namespace {

constexpr double kMonotoneRounding = 1 + 1e-9;
constexpr int kPlansPerStyle = 400;

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  int up_to(int most) { return 1 + static_cast<int>(engine_() % static_cast<unsigned>(most)); }
  bool chance(int one_in) { return engine_() % static_cast<unsigned>(one_in) == 0; }
  // Evenly over orders of magnitude.
  double between(double low, double high) {
    return low * std::pow(high / low, static_cast<double>(engine_() >> 11) / 9007199254740992.0);
  }

 private:
  std::mt19937_64 engine_;
};

// A link before it becomes a curve, so that it can be made better.
struct LinkFacts {
  LinkEnd from, to;
  NetworkProfile::Scope scope;
  double latency_s, bytes_per_s, node_bytes_per_s;
  bool measured;  // at points, not known by its rates

  NetworkProfile::Link link() const {
    if (!measured) return {from, to, scope, LinkCurve::from_rates(latency_s, bytes_per_s, node_bytes_per_s)};
    std::vector<std::pair<double, double>> points;
    for (double bytes : {4e3, 1e6, 64e6}) points.emplace_back(bytes, latency_s + bytes / bytes_per_s);
    return {from, to, scope, LinkCurve::from_points(points)};
  }
};

struct Scenario {
  test::Instance in;
  std::vector<LinkFacts> links;
  FrameworkStyle style;
  Plan plan;

  Prediction predict() {
    in.profiles.network = {};
    for (const LinkFacts& link : links) in.profiles.network.add(link.link());
    return native::simulate({in.job, in.snapshot, in.catalog, in.profiles, style}, plan);
  }
};

const char* const kTypes[] = {"fast", "slow"};

void add_profiles(Dice& random, test::Instance& in) {
  for (const char* type : kTypes) {
    in.catalog.gpu_types[type].memory_bytes = static_cast<int64_t>(random.between(3e7, 1e9));
    in.catalog.gpu_types[type].usd_per_hour = random.between(0.1, 10);
    LayerProfile& profile = in.profiles.layers[type];
    profile.gpu_type = type;
    profile.overheads = {static_cast<int64_t>(random.between(1, 1e7)), random.between(1e-4, 1e-1),
                         random.between(1, 2), random.between(1, 3), random.between(0.001, 0.2)};
    for (int microbatch : {1, 2})
      for (int tp : {1, 2, 4})
        for (int layer = 0; layer < in.job.model.num_all_layers(); ++layer) {
          const double forward_s = random.between(1e-4, 1e-1);
          profile.cells[{microbatch, {tp}}].push_back(
              {forward_s, random.between(1e-4, 1e-1), random.between(1e-5, 1e-2), forward_s / 4});
        }
  }
  in.profiles.sizes.by_shape.clear();
  for (int tp : {1, 2, 4})
    for (int layer = 0; layer < in.job.model.num_all_layers(); ++layer) {
      LayerSizes sizes;
      sizes.parameters = static_cast<int64_t>(random.between(1e3, 1e7)) / tp;
      sizes.output_elements = static_cast<int64_t>(random.between(1e3, 1e6));
      sizes.activation_bytes = static_cast<int64_t>(random.between(1e4, 1e7)) / tp;
      sizes.selective_bytes = sizes.activation_bytes / 2;
      sizes.checkpoint_bytes = sizes.activation_bytes / 10;
      sizes.workspace_bytes = static_cast<int64_t>(random.between(1, 1e7));
      sizes.persistent_bytes = sizes.workspace_bytes / 2;
      in.profiles.sizes.by_shape[{tp}].push_back(sizes);
    }
}

std::vector<LinkFacts> random_links(Dice& random) {
  std::vector<LinkFacts> links;
  const auto add = [&](LinkEnd from, LinkEnd to, NetworkProfile::Scope scope, double low, double high) {
    links.push_back({std::move(from), std::move(to), scope, random.between(1e-6, 1e-2),
                     random.between(low, high), random.chance(2) ? 0 : random.between(low, high),
                     random.chance(3)});
  };
  const LinkEnd any{"", "", 0}, fast{"fast", "", 0}, slow{"slow", "", 0};
  add(any, any, NetworkProfile::Scope::intra_node, 1e8, 1e11);
  add(any, any, NetworkProfile::Scope::inter_node, 1e7, 1e10);
  add(fast, fast, NetworkProfile::Scope::inter_node, 1e7, 1e10);
  add(fast, slow, NetworkProfile::Scope::inter_node, 1e7, 1e10);
  return links;
}

// Ascending cuts of `layers` layers into `parts`.
std::vector<int> random_cuts(Dice& random, int layers, int parts) {
  std::vector<int> cuts{0};
  for (int part = 1; part < parts; ++part) {
    const int room = layers - cuts.back() - (parts - part);
    cuts.push_back(cuts.back() + random.up_to(room));
  }
  cuts.push_back(layers);
  return cuts;
}

Plan random_plan(Dice& random, const test::Instance& in, const FrameworkStyle& style) {
  Plan plan;
  plan.model = in.job.model.name;
  plan.microbatch = random.up_to(2);
  plan.zero = random.chance(2) ? Zero::optimizer : Zero::none;
  const bool at_once =
      style.sends == FrameworkStyle::Sends::asynchronous || style.sends == FrameworkStyle::Sends::blocking;
  plan.interleave = at_once && random.chance(3) ? 2 : 1;
  const int layers = in.job.model.num_all_layers(), pipelines = random.up_to(4);
  const bool is_placed = !random.chance(4), alike = random.chance(2);
  const Recompute modes[] = {Recompute::none, Recompute::selective, Recompute::full};
  for (int j = 0; j < pipelines; ++j) {
    PlanPipeline pipeline;
    const int groups = plan.interleave > 1 ? 1 + random.up_to(2) : random.up_to(std::min(4, layers));
    pipeline.microbatches = plan.interleave > 1 ? groups * random.up_to(5) : random.up_to(12);
    const std::vector<int> cuts = random_cuts(random, layers, groups * plan.interleave);
    for (int i = 0; i < groups * plan.interleave; ++i) {
      PlanStage stage;
      if (i >= groups)
        stage = pipeline.stages[static_cast<size_t>(i % groups)];  // another chunk of the same GPUs
      if (i < groups) {
        stage.gpu_type = kTypes[random.up_to(2) - 1];
        stage.zone = "z1";
        stage.shape.tp = 1 << (random.up_to(3) - 1);
        stage.recompute = modes[random.up_to(3) - 1];
        if (is_placed) stage.node = stage.gpu_type + std::to_string(random.up_to(3));
      }
      stage.first_layer = cuts[static_cast<size_t>(i)];
      stage.end_layer = cuts[static_cast<size_t>(i) + 1];
      pipeline.stages.push_back(stage);
    }
    plan.pipelines.push_back(alike && j > 0 ? plan.pipelines[0] : pipeline);
    plan.global_batch += int64_t{plan.pipelines.back().microbatches} * plan.microbatch;
  }
  return plan;
}

Scenario random_scenario(Dice& random, const FrameworkStyle& style) {
  Scenario s;
  s.in = test::empty_instance(3 + random.up_to(6), 1);
  s.in.job.training.precision = random.chance(2) ? Precision::bf16 : Precision::fp32;
  add_profiles(random, s.in);
  s.links = random_links(random);
  s.style = style;
  s.plan = random_plan(random, s.in, style);
  s.in.job.training.global_batch = s.plan.global_batch;
  return s;
}

void improve_bandwidth(Dice& random, Scenario& s) {
  for (LinkFacts& link : s.links) {
    if (random.chance(2)) link.bytes_per_s *= random.between(1, 10);
    if (random.chance(2)) link.node_bytes_per_s *= random.between(1, 10);
  }
}

void improve_latency(Dice& random, Scenario& s) {
  for (LinkFacts& link : s.links)
    if (random.chance(2)) link.latency_s /= random.between(1, 10);
}

void improve_layers(Dice& random, Scenario& s) {
  for (auto& [type, profile] : s.in.profiles.layers)
    for (auto& [key, cell] : profile.cells)
      for (LayerTimes& times : cell)
        for (double LayerTimes::*time : {&LayerTimes::forward_s, &LayerTimes::backward_s,
                                         &LayerTimes::update_s, &LayerTimes::attention_s})
          if (random.chance(2)) times.*time /= random.between(1, 3);
}

void improve_capacity(Dice& random, Scenario& s) {
  for (auto& [name, type] : s.in.catalog.gpu_types)
    type.memory_bytes = static_cast<int64_t>(static_cast<double>(type.memory_bytes) * random.between(1, 4));
}

void improve_platform(Dice& random, Scenario& s) {
  for (auto& [type, profile] : s.in.profiles.layers) {
    PlatformOverheads& o = profile.overheads;
    o.base_memory_bytes /= 2;
    o.iteration_overhead_s /= random.between(1, 3);
    o.node_sync_s /= random.between(1, 3);
    o.message_start_s /= random.between(1, 3);
    o.jitter /= random.between(1, 3);
    o.message_slowdown = 1 + (o.message_slowdown - 1) / 2;
    o.sync_slowdown = 1 + (o.sync_slowdown - 1) / 2;
  }
}

std::vector<FrameworkStyle> styles() {
  std::vector<FrameworkStyle> all{own_framework()};
  for (const auto& [name, style] : load_assumptions(SAILOR_SOURCE_DIR "/etc").frameworks)
    all.push_back(style);
  // Overlap to the full, in buckets, with a sharded optimizer: what no shipped description has together.
  FrameworkStyle most = own_framework();
  most.name = "most";
  most.gradient_sync = FrameworkStyle::Sync::overlapped;
  most.overlap = 1;
  most.tree_sync = true;
  most.sync_bucket_bytes = 1 << 20;
  all.push_back(most);
  return all;
}

using Improve = void (*)(Dice&, Scenario&);

void expect_never_worse(Improve improve, const char* what) {
  for (const FrameworkStyle& style : styles()) {
    int worse = 0;
    for (uint64_t seed = 0; seed < kPlansPerStyle; ++seed) {
      Dice random(seed);
      Scenario s = random_scenario(random, style);
      const Prediction before = s.predict();
      improve(random, s);
      const Prediction after = s.predict();
      const bool ok = after.iteration_s <= before.iteration_s * kMonotoneRounding &&
                      after.pipeline_s <= before.pipeline_s * kMonotoneRounding &&
                      after.peak_memory_bytes() <= before.peak_memory_bytes() && (after.fits || !before.fits);
      if (ok || ++worse > 3) continue;
      ADD_FAILURE() << what << ", framework " << style.name << ", seed " << seed << ": " << before.iteration_s
                    << " s became " << after.iteration_s << " s, peak " << before.peak_memory_bytes()
                    << " became " << after.peak_memory_bytes() << ": " << summary(s.plan);
    }
    EXPECT_EQ(worse, 0) << what << ", framework " << style.name << ", of " << kPlansPerStyle << " plans";
  }
}

TEST(BetterHardware, MoreBandwidthIsNeverSlowerOrLarger) {
  expect_never_worse(improve_bandwidth, "bandwidth");
}

TEST(BetterHardware, LessLatencyIsNeverSlowerOrLarger) {
  expect_never_worse(improve_latency, "latency");
}

TEST(BetterHardware, FasterLayersAreNeverSlowerOrLarger) {
  expect_never_worse(improve_layers, "layers");
}

TEST(BetterHardware, MoreMemoryIsNeverSlowerOrLargerOrTooLittle) {
  expect_never_worse(improve_capacity, "capacity");
}

TEST(BetterHardware, LessOverheadIsNeverSlowerOrLarger) {
  expect_never_worse(improve_platform, "platform");
}

// The same for runs whose layers are estimated: a GPU with a higher peak or more bandwidth, every shipped
// platform, framework and type.
TEST(BetterHardware, AFasterGpuIsNeverSlowerWhereLayersAreEstimated) {
  const Assumptions shipped = load_assumptions(SAILOR_SOURCE_DIR "/etc");
  Dice random(11);
  int predicted = 0;
  for (const auto& [platform_name, platform] : shipped.platforms)
    for (const auto& [framework, style] : shipped.frameworks)
      for (const auto& [type_name, type] : shipped.catalog.gpu_types) {
        MeasuredRun record;
        record.framework = framework;
        record.platform = platform_name;
        record.shape.heads = record.shape.kv_heads = 8 * random.up_to(4);
        record.shape.head_width = 64;
        record.shape.hidden = record.shape.heads * 64;
        record.shape.feed_forward = 4 * record.shape.hidden;
        record.shape.layers = 2 * random.up_to(4);
        record.shape.sequence = 256 * random.up_to(8);
        record.shape.vocabulary = 50257;
        const int tp = 1 << (random.up_to(3) - 1), pipelines = random.up_to(3);
        record.plan.microbatch = random.up_to(4);
        for (int j = 0; j < pipelines; ++j) {
          PlanStage first;
          first.end_layer = 1 + record.shape.layers / 2;
          first.gpu_type = type_name;
          first.zone = "z";
          first.shape.tp = tp;
          first.node = std::to_string(2 * j / 4);
          PlanStage second = first;
          second.first_layer = first.end_layer;
          second.end_layer = record.shape.num_all_layers();
          second.node = std::to_string((2 * j + 1) / 4);
          record.plan.pipelines.push_back({random.up_to(6), {first, second}});
        }
        double before = 0;
        try {
          before = predict_run(record, shipped).iteration_s;
        } catch (const InputError&) {  // this platform has no links between such GPUs
          continue;
        }
        ++predicted;
        ASSERT_TRUE(std::isfinite(before) && before > 0)
            << platform_name << " " << framework << " " << type_name;
        Assumptions better = shipped;
        GpuType& faster = better.catalog.gpu_types.at(type_name);
        for (auto& [precision, flops] : faster.peak_flops) flops *= random.between(1, 4);
        EXPECT_LE(predict_run(record, better).iteration_s, before * kMonotoneRounding)
            << "peak of " << type_name << ", " << platform_name << ", " << framework;
        better = shipped;
        better.catalog.gpu_types.at(type_name).memory_bandwidth_bytes_per_s *= random.between(1, 4);
        EXPECT_LE(predict_run(record, better).iteration_s, before * kMonotoneRounding)
            << "memory bandwidth of " << type_name << ", " << platform_name << ", " << framework;
      }
  EXPECT_GT(predicted, 500);
}

}  // namespace
}  // namespace sailor
