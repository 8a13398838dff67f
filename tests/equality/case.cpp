#include "tests/equality/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <regex>
#include <set>

#include "planner/plan/validate.h"
#include "planner/spec/error.h"
#include "planner/spec/lora_parameters.h"
#include "planner/spec/model_family.h"
#include "tests/layout_text.h"

namespace sailor::equality {
namespace {

using Random = std::mt19937_64;
using Layout = ShapeLayout;

// Features of a plan in addition to its layout, each used in about every second case in which it is possible.
struct Options {
  bool recompute = false;
  Zero zero = Zero::none;
  int chunks = 1;  // of the model on each group of GPUs
};

// Does the case have a feature of plans that `drawn` says it may have?
bool wants(const CaseOptions& options, PlanFeature feature, bool drawn) {
  return options.features ? options.features->contains(feature) : drawn;
}

// None in every second case, and ZeRO-3 where it is asked for.
Zero draw_zero(Random& random) {
  constexpr Zero kDegrees[] = {Zero::optimizer, Zero::none, Zero::gradients, Zero::none};
  return kDegrees[random() % std::size(kDegrees)];
}

int least_pipelines(const CaseOptions& wanted, const Options& drawn) {
  if (!wanted.features || drawn.zero == Zero::none) return 1;
  return wanted.features->contains(PlanFeature::hybrid_zero) ? 4 : 2;
}

Options draw_options(const CaseOptions& wanted, Random& random) {
  Options options;
  options.recompute = wants(wanted, PlanFeature::recompute, random() % 2 == 0);
  options.zero = draw_zero(random);
  if (wanted.features) options.zero = zero_degrees(*wanted.features).back();
  if (wanted.zero) options.zero = *wanted.zero;
  const bool interleaves = wants(wanted, PlanFeature::interleave, random() % 2 == 0);
  options.chunks = interleaves ? between(random, 2, 3) : 1;
  return options;
}

constexpr int kMaxRanks = 12;

// In a drawn layout every pipeline has at least `least_stages` stages.
Layout draw_layout(Random& random, bool several_stages, int least_stages, int least_pipelines) {
  const bool threes = random() % 3 == 0;
  // Not drawn again: many of them are seldom few enough ranks.
  const int pipelines = std::max(least_pipelines, between(random, 1, 4));
  while (true) {
    Layout layout;
    int ranks = 0;
    std::size_t most_stages = 0;
    for (int p = 0; p < pipelines; ++p) {
      layout.emplace_back();
      const int stages = between(random, least_stages, 4);
      for (int s = 0; s < stages; ++s) {
        constexpr int kDegrees[] = {1, 1, 2, 4, 3};
        layout.back().push_back({.tp = kDegrees[between(random, 0, threes ? 4 : 3)]});
        ranks += layout.back().back().gpus();
      }
      most_stages = std::max(most_stages, layout.back().size());
    }
    if (ranks >= 2 && ranks <= kMaxRanks && (most_stages > 1 || !several_stages)) return layout;
  }
}

// Some stages, at least one if there is room, split the tokens over GPUs with the same weights.
void draw_context(Random& random, Layout& layout) {
  int ranks = 0;
  std::vector<ReplicaShape*> shapes;
  for (auto& stages : layout)
    for (ReplicaShape& shape : stages) {
      ranks += shape.gpus();
      shapes.push_back(&shape);
    }
  std::rotate(shapes.begin(), shapes.begin() + between(random, 0, static_cast<int>(shapes.size()) - 1),
              shapes.end());
  bool has_one = false;
  for (ReplicaShape* shape : shapes) {
    const int cp = random() % 3 == 0 ? 3 : 2, more = shape->tp * (cp - 1);
    if ((has_one && random() % 2 == 0) || ranks + more > kMaxRanks) continue;
    shape->cp = cp;
    ranks += more;
    has_one = true;
  }
}

// `parts` positive numbers that add up to `total`.
std::vector<int> draw_shares(Random& random, int total, int parts) {
  std::vector<int> shares(static_cast<std::size_t>(parts), 1);
  for (int left = total - parts; left > 0; --left) ++shares[random() % shares.size()];
  return shares;
}

// Layers of the stages, or of all chunks, of a pipeline.
PlanPipeline make_pipeline(const std::vector<ReplicaShape>& shapes, const std::vector<int>& cut,
                           int microbatches) {
  PlanPipeline pipeline;
  pipeline.microbatches = microbatches;
  int next = 0;
  for (std::size_t s = 0; s < cut.size(); ++s) {
    PlanStage stage;
    stage.first_layer = next;
    stage.end_layer = next += cut[s];
    stage.gpu_type = "cpu";
    stage.zone = "here";
    stage.shape = shapes[s % shapes.size()];
    pipeline.stages.push_back(stage);
  }
  return pipeline;
}

// At one level, or with the first blocks at a higher one than the others.
StageRecompute draw_levels(Random& random, const PlanStage& stage, int layers) {
  const int blocks = std::min(stage.end_layer, layers - 1) - std::max(stage.first_layer, 1);
  const size_t levels = trained_levels(false).size(), deep = random() % levels;
  if (blocks < 1 || deep == 0 || random() % 2) return kTrainedLevels[deep];
  return {kTrainedLevels[deep], between(random, 1, blocks), kTrainedLevels[random() % deep]};
}

// At least one stage computes again, where any may.
void draw_recompute(Random& random, Plan& plan, int layers) {
  std::vector<PlanStage*> stages;
  for (PlanPipeline& pipeline : plan.pipelines) {
    for (PlanStage& stage : pipeline.stages) stages.push_back(&stage);
  }
  for (PlanStage* stage : stages) stage->recompute = draw_levels(random, *stage, layers);
  PlanStage& one = *stages[random() % stages.size()];
  if (one.recompute == Recompute::none) one.recompute = kTrainedLevels[1 + random() % 3];
}

// Where the plan can have it: of every other stage, at least of one.
void draw_weight_delays(Random& random, Plan& plan) {
  if (plan.interleave > 1 || plan.zero >= Zero::gradients) return;
  for (PlanPipeline& pipeline : plan.pipelines) {
    const int stages = static_cast<int>(pipeline.stages.size());
    for (int s = 0; s < stages; ++s)
      if (s + 1 == stages || random() % 2)
        pipeline.stages[static_cast<size_t>(s)].weight_delay = between(random, 0, s);
  }
}

// The inputs of blocks of a stage that recomputes wait on its nodes.
void offload_inputs(PlanStage& stage) {
  const StageRecompute& of = stage.recompute;
  if (of.deep_blocks() > 0)
    stage.recompute = {Recompute::offload, of.deep_blocks(), of.level()};
  else if (of.level() != Recompute::none)
    stage.recompute = Recompute::offload;
}

// Of every other group of GPUs, at least of one; of every third no inputs, or only those.
void draw_offload(Random& random, Plan& plan) {
  for (PlanPipeline& pipeline : plan.pipelines) {
    const auto groups = static_cast<std::size_t>(num_groups(plan, pipeline));
    for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
      const bool drawn = s + 1 == groups || random() % 2;
      const auto which = drawn ? random() % 3 : 1;
      pipeline.stages[s].offload = s >= groups  ? pipeline.stages[s % groups].offload
                                   : which != 1 ? Offload::optimizer
                                                : Offload::none;
      if (drawn && which != 0) offload_inputs(pipeline.stages[s]);
    }
  }
}

// Groups of pipelines that have as many ranks for every layer, two at least.
void draw_zero_group(Random& random, const JobSpec& job, Plan& plan) {
  if (plan.zero == Zero::none) return;
  std::vector<int> sizes;
  for (int size = 1; size < static_cast<int>(plan.pipelines.size()); ++size) {
    plan.zero_group = size;
    if (zero_groups_match(plan, job.model)) sizes.push_back(size);
  }
  plan.zero_group = sizes.empty() ? 0 : sizes[random() % sizes.size()];
  if (plan.zero_group == 0 || plan.zero < Zero::parameters || random() % 2) return;
  // Stages of different groups may be cut differently.
  const Plan alike = plan;
  for (int first = plan.zero_group; first < static_cast<int>(plan.pipelines.size());
       first += plan.zero_group) {
    const auto chunks = static_cast<int>(plan.pipelines[static_cast<std::size_t>(first)].stages.size());
    const std::vector<int> cut = draw_shares(random, job.model.num_all_layers(), chunks);
    for (int p = first; p < first + plan.zero_group; ++p) {
      int next = 0;
      for (std::size_t s = 0; s < cut.size(); ++s) {
        PlanStage& stage = plan.pipelines[static_cast<std::size_t>(p)].stages[s];
        stage.first_layer = next;
        stage.end_layer = next += cut[s];
        stage.recompute = Recompute::none;
      }
    }
  }
  if (!zero_groups_match(plan, job.model)) plan = alike;
}

// Where any stage can use it, and where one must.
void draw_sequence_parallel(const CaseOptions& options, Random& random, Plan& plan) {
  const bool wanted = wants(options, PlanFeature::sequence_parallel, random() % 2 == 0);
  plan.sequence_parallel = (wanted && has_tensor_parallelism(plan)) || has_context_parallelism(plan);
}

// Another plan for the same job: other TP degrees that divide `splits`, other pipelines, cuts and shares.
Plan draw_second_plan(Random& random, const JobSpec& job, const Plan& first, int splits, int most_ranks) {
  const int microbatches = static_cast<int>((first.global_batch + first.microbatch - 1) / first.microbatch);
  while (true) {
    Plan plan = first;
    plan.pipelines.clear();
    plan.interleave = 1;
    plan.zero_group = 0;
    plan.zero = draw_zero(random);
    const std::vector<int> shares =
        draw_shares(random, microbatches, between(random, 1, std::min(4, microbatches)));
    int ranks = 0;
    if (first.zero >= Zero::parameters && random() % 2) plan.zero = Zero::parameters;
    std::vector<int> cut;
    for (const int share : shares) {
      const bool alike = plan.zero >= Zero::parameters && !cut.empty();
      std::vector<ReplicaShape> shapes(alike ? cut.size() : static_cast<std::size_t>(between(random, 1, 4)));
      for (ReplicaShape& shape : shapes) {
        do shape = {.tp = between(random, 1, 4), .cp = random() % 4 == 0 ? between(random, 2, 3) : 1};
        while (splits % shape.tp != 0 || !job.model.splits_over(shape));
        ranks += shape.gpus();
      }
      if (!alike) cut = draw_shares(random, job.model.num_all_layers(), static_cast<int>(shapes.size()));
      plan.pipelines.push_back(make_pipeline(shapes, cut, share));
    }
    if (ranks <= most_ranks) return plan;
  }
}

// As ZeRO-3 needs it.
void cut_to_one_depth(Layout& layout) {
  std::size_t depth = layout.front().size();
  for (const auto& stages : layout) depth = std::min(depth, stages.size());
  for (auto& stages : layout) stages.resize(depth);
}

std::string layout_of(const Plan& plan) {
  Layout layout;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    layout.emplace_back();
    for (const PlanStage& stage : pipeline.stages) layout.back().push_back(stage.shape);
  }
  return to_text(layout);
}

template <class Choice>
void draw(Random& random, Choice& choice) {
  choice = static_cast<Choice>(random() % words_of(choice).size());
}

// Of a model without a family: anything.
void draw_choices(Random& random, ModelSpec& model) {
  draw(random, model.norm);
  draw(random, model.norm_place);
  draw(random, model.position_embedding);
  draw(random, model.qk_norm);
  do draw(random, model.activation);
  while (model.activation == Activation::relu);  // see compare.h
  const auto one_of_two = [&] { return random() % 2 == 0; };
  model.gated_mlp = one_of_two();
  model.qkv_bias = one_of_two();
  model.proj_bias = one_of_two();
  model.mlp_bias = one_of_two();
  model.parallel_residual = one_of_two();
  model.shared_norm = model.parallel_residual && model.norm_place == NormPlace::before && one_of_two();
  model.unused_positions = between(random, 0, 2);
  model.rotary_interleaved = !model.learned_positions() && one_of_two();
}

// The sequences are longer than the original length of most.
void draw_rotary_scaling(Random& random, ModelSpec& model) {
  draw(random, model.rotary_scaling);
  if (model.learned_positions() || model.rotated_elements() < 4) model.rotary_scaling = RotaryScaling::none;
  if (model.rotary_scaling == RotaryScaling::none) return;
  model.rotary_factor = between(random, 2, 8);
  model.rotary_original_positions = between(random, 8, 64);
  model.rotary_fast_rotations = between(random, 2, 8);
  model.rotary_slow_rotations = 0.5;
  model.rotary_whole_limits = random() % 2 == 0;
}

void draw_factors(Random& random, const ModelFamily& family, ModelSpec& model) {
  const auto maybe = [&](const char* key, double& value, double low, double high) {
    if (family.has(key) && random() % 2) value = low + (high - low) * between(random, 0, 100) / 100;
  };
  maybe("attention_scale", model.attention_scale, 0.1, 0.5);
  maybe("attention_soft_cap", model.attention_soft_cap, 0.5, 4);
  maybe("logit_soft_cap", model.logit_soft_cap, 0.5, 4);
  maybe("embedding_scale", model.embedding_scale, 0.5, 4);
  maybe("residual_scale", model.residual_scale, 0.3, 1);
  maybe("logit_scale", model.logit_scale, 0.3, 1);
  maybe("local_rotary_base", model.local_rotary_base, 50, 500);
  if (family.name == "falcon") model.shared_norm = random() % 2 == 0;
}

// What not every family has. Every TP degree divides `splits`, and so it must the key and value heads.
void draw_family_keys(Random& random, int splits, ModelSpec& model, std::set<std::string>& features) {
  const ModelFamily& family = model_family(model.family);
  if (family.has("kv_heads") && random() % 3 != 0) {
    model.kv_heads = splits;
    model.heads = splits * between(random, 2, 3);
    model.hidden = model.heads * 8;
    features.insert("grouped_heads");
  }
  if (family.has("rotary_base")) model.rotary_base = between(random, 100, 20000);
  if (family.has("head_size") && random() % 2) {
    model.head_size = 2 * between(random, 3, 8);
    features.insert("head_size");
  }
  if (family.name == kAnyDecoder) draw_choices(random, model);
  if (family.has("attention_window") && (family.name == "gpt-neo" || random() % 3 != 0)) {
    constexpr const char* kPatterns[] = {"L", "LG", "GL", "LLG", "GGL"};
    if (family.has("window_pattern")) model.window_pattern = kPatterns[random() % std::size(kPatterns)];
    model.attention_window = 1;  // the number follows the sequence
    features.insert("window");
  }
  if (family.has("rotary_fraction")) {
    model.rotary_fraction = 1.0 / (1 << between(random, 0, 2));
    if (model.rotated_elements() % 2 != 0) model.rotary_fraction = 1;
    if (model.rotary_fraction < 1) features.insert("partial_rotary");
  }
  if (model.rotary_interleaved) features.insert("interleaved_rotary");
  if (family.has("parallel_residual") && family.name != kAnyDecoder && random() % 3 != 0) {
    model.parallel_residual = true;
    features.insert("parallel_residual");
  }
  if (family.has("rotary_scaling")) draw_rotary_scaling(random, model);
  draw_factors(random, family, model);
  if (random() % 2) {
    model.tied_embeddings = true;
    features.insert("tied");
  }
}

// Some of the linear layers get adapters, or all.
LoraSpec draw_lora(Random& random, const ModelSpec& model) {
  LoraSpec lora{.r = between(random, 1, 9), .alpha = between(random, 1, 24) / 2.0, .target_modules = {}};
  const std::vector<std::string> modules = last_words(linear_modules(model));
  while (lora.target_modules.empty()) {
    for (const std::string& module : modules)
      if (random() % 3 != 0) lora.target_modules.push_back(module);
  }
  return lora;
}

// Settings of some of the parameters, chosen by a name, by all names that differ in a number, by the last
// word or by the words before it.
std::vector<ParameterGroup> draw_groups(Random& random, const ModelSpec& model,
                                        const std::optional<LoraSpec>& lora) {
  constexpr double kScales[] = {0, 0.1, 0.5, 3}, kDecays[] = {0, 0.05, 0.3};
  const std::vector<ParameterSpec> trained = trained_parameters(model, lora, model.vocabulary);
  std::vector<ParameterGroup> groups;
  for (int tries = between(random, 1, 6); tries > 0 || groups.empty(); --tries) {
    const ParameterSpec& parameter = trained[random() % trained.size()];
    const auto& pieces = parameter.stored.pieces;
    std::string name = pieces[random() % pieces.size()].tensor;
    if (name.empty()) name = parameter.name;
    ParameterGroup& group = groups.emplace_back();
    switch (random() % 4) {
      case 0:
        group.match = name;
        break;
      case 1:
        group.match = std::regex_replace(name, std::regex("[0-9]+"), "*");
        break;
      case 2:
        group.match = "*" + name.substr(name.rfind('.'));
        break;
      default:
        group.match = name.substr(0, name.rfind('.', name.rfind('.') - 1)) + ".*";
    }
    group.lr_scale = kScales[random() % std::size(kScales)];
    if (random() % 2) group.weight_decay = kDecays[random() % std::size(kDecays)];
    if (find_problem(groups, model, lora)) groups.pop_back();
  }
  return groups;
}

}  // namespace

Case make_case(const CaseOptions& options) {
  Random random(options.seed * 1000003 + static_cast<uint64_t>(options.index));
  const bool large = options.index % 2 == 0;  // messages above 64 KiB
  Random option_random(options.seed * 6700417 + static_cast<uint64_t>(options.index));
  Options drawn = draw_options(options, option_random);
  const bool delays = wants(options, PlanFeature::split_backward, false);
  Layout layout = options.layout.empty() ? draw_layout(random, large, drawn.chunks > 1 || delays ? 2 : 1,
                                                       least_pipelines(options, drawn))
                                         : parse_layout(options.layout);
  if (options.layout.empty() && wants(options, PlanFeature::sequence_parallel, false)) {
    ReplicaShape& first = layout.front().front();
    first.tp = std::max(2, first.tp);
  }
  Random context_random(options.seed * 179424673 + static_cast<uint64_t>(options.index));
  if (options.layout.empty() && wants(options, PlanFeature::context_parallel, context_random() % 3 == 0))
    draw_context(context_random, layout);
  if (drawn.zero >= Zero::parameters) cut_to_one_depth(layout);
  std::size_t most_stages = 1;
  int heads = 1;  // every TP degree divides them, and every degree of a replica unless there may be rings
  const bool rings = context_random() % 2 == 0;
  for (const auto& stages : layout) {
    most_stages = std::max(most_stages, stages.size());
    // With ZeRO-2 chunks are cut alike, which pipelines of unlike depth cannot be; with ZeRO-3 stages are.
    const bool unlike = drawn.zero >= Zero::gradients && stages.size() != layout.front().size();
    if (stages.size() < 2 || unlike) drawn.chunks = 1;
    for (const ReplicaShape& shape : stages) {
      const int64_t multiple = std::lcm<int64_t>(heads, rings ? shape.tp : shape.gpus());
      if (multiple > 4096)
        throw InputError("--layout: the least common multiple of the degrees is above 4096");
      heads = static_cast<int>(multiple);
    }
  }
  while (heads < 4) heads *= rings ? 3 : 2;

  Case result;
  result.layout = to_text(layout);
  std::set<std::string> features;

  ModelSpec& model = result.job.model;
  set_family(model, options.family);
  model.name = "equality";
  model.layers = std::max(between(random, 2, 4), static_cast<int>(most_stages) * drawn.chunks - 2);
  model.heads = heads;
  model.hidden = heads * (large ? (heads <= 4 ? 24 : 8) : 8);
  const int widths = between(random, 2, 4);
  model.vocabulary = between(random, 50, 130);

  TrainingSpec& training = result.job.training;
  training.precision = options.precision;
  training.seed = random();
  // The scale grows every few steps. From 2^10 it stays below what the gradients of these models bear (inside
  // a layer with norms after its parts they are 30 times those of the weights); 2^28 is far above, and from
  // where it has come down to it grows too far again and again.
  training.loss_scale.initial = int64_t{1} << (options.force_overflow ? 28 : 10);
  training.loss_scale.window = options.force_overflow ? 3 : 8;
  if (options.force_overflow) result.steps = kStepsWithOverflow;
  training.steps = result.steps;
  training.optimizer.lr = 1e-4;       // with epsilon: see main.cpp
  training.optimizer.epsilon = 1e-3;  // not the usual 1e-8
  training.optimizer.weight_decay = 0.1;

  Random family_random(options.seed * 7919 + static_cast<uint64_t>(options.index));
  draw_family_keys(family_random, heads, model, features);
  model.feed_forward = model.hidden * widths;
  Random dropout_random(options.seed * 15485863 + static_cast<uint64_t>(options.index));
  if (dropout_random() % 3 == 0) {
    model.dropout = between(dropout_random, 5, 50) / 100.0;
    features.insert("dropout");
  }

  Random document_random(options.seed * 32452843 + static_cast<uint64_t>(options.index));
  if (document_random() % 3 == 0) {
    result.job.data.document_mask = true;
    features.insert("documents");
    if (document_random() % 2 == 0) {
      training.task = Task::sft;
      features.insert("sft");
    }
  }

  // A scale that is far too high for the gradients of a model is not for those of adapters.
  Random lora_random(options.seed * 86028121 + static_cast<uint64_t>(options.index));
  if (options.lora ||
      (lora_random() % 4 == 0 && !options.force_overflow && !options.muon && drawn.zero < Zero::parameters)) {
    training.lora = draw_lora(lora_random, model);
    features.insert(fmt::format("lora_{}", training.lora->r));
  }

  Random muon_random(options.seed * 49979687 + static_cast<uint64_t>(options.index));
  if (!training.lora && (options.muon || muon_random() % 4 == 0)) {
    training.optimizer.name = "muon";
    training.optimizer.momentum = 0.9;
    training.optimizer.nesterov = muon_random() % 2 == 0;
    features.insert(training.optimizer.nesterov ? "muon_nesterov" : "muon");
  }

  Random loss_random(options.seed * 122949823 + static_cast<uint64_t>(options.index));
  if (loss_random() % 3 == 0) {
    training.z_loss = std::pow(10, -between(loss_random, 2, 4));
    features.insert("z_loss");
  }
  if (loss_random() % 3 == 0) {
    training.ema = EmaSpec{.decay = between(loss_random, 50, 99) / 100.0};
    features.insert("ema");
  }
  // A factor so small that some steps are above it. In 16 bits rounding would decide about too many.
  if (loss_random() % 3 == 0 && kind_of(options.precision).element_bytes >= 4) {
    training.on_spike = SpikeSpec{.factor = 1 + between(loss_random, 0, 4) / 100.0,
                                  .window = between(loss_random, 2, 6),
                                  .most_in_a_row = 2 * result.steps};
    features.insert("on_spike");
  }
  result.job.metrics.gradient_statistics_every = between(loss_random, 1, 4);

  Plan& plan = result.plan;
  plan.model = model.name;
  plan.microbatch = between(random, 2, 3);
  const int64_t row_bytes = int64_t{plan.microbatch} * model.hidden * element_bytes(options.precision);
  model.sequence =
      large ? static_cast<int>(65536 / row_bytes) + between(random, 1, 8) : between(random, 12, 40);
  if (model.attention_window > 0) model.attention_window = between(family_random, 2, model.sequence - 1);
  if (model.learned_positions()) model.positions = model.sequence + between(family_random, 0, 3);

  Random group_random(options.seed * 141650939 + static_cast<uint64_t>(options.index));
  if (group_random() % 3 == 0) {
    training.optimizer.groups = draw_groups(group_random, model, training.lora);
    features.insert(fmt::format("groups_{}", training.optimizer.groups.size()));
  }

  const int pipelines = static_cast<int>(layout.size());
  int missing = random() % 2 ? between(random, 1, plan.microbatch - 1) : 0;
  std::vector<int> shares =
      draw_shares(random, between(random, std::max(2, pipelines), pipelines + 4), pipelines);
  std::vector<int> cut;
  for (int p = 0; p < pipelines; ++p) {
    const auto& shapes = layout[static_cast<std::size_t>(p)];
    const int groups = static_cast<int>(shapes.size());
    int& share = shares[static_cast<std::size_t>(p)];
    if (drawn.chunks > 1) share = groups * between(option_random, 1, 2);  // whole rounds
    const bool alike = drawn.zero >= Zero::parameters || (drawn.zero == Zero::gradients && drawn.chunks > 1);
    if (p == 0 || (!alike && wants(options, PlanFeature::unlike_cuts, true)) ||
        static_cast<int>(cut.size()) != groups * drawn.chunks)
      cut = draw_shares(random, model.num_all_layers(), groups * drawn.chunks);
    plan.pipelines.push_back(make_pipeline(shapes, cut, share));
    if (std::set<int>(cut.begin(), cut.end()).size() > 1) features.insert("uneven_split");
  }
  Random size_random(options.seed * 217645199 + static_cast<uint64_t>(options.index));
  if (wants(options, PlanFeature::unlike_microbatches, size_random() % 3 == 0)) {
    for (PlanPipeline& pipeline : plan.pipelines) pipeline.microbatch = between(size_random, 1, 4);
    missing = std::min(missing, *plan.pipelines.back().microbatch - 1);
  }
  if (has_unlike_microbatches(plan)) features.insert("unlike_microbatches");
  training.global_batch = plan.global_batch = sequences_of_microbatches(plan) - missing;
  plan.zero = drawn.zero;
  plan.interleave = drawn.chunks;
  if (drawn.recompute) {
    draw_recompute(option_random, plan, model.num_all_layers());
    for (const PlanPipeline& pipeline : plan.pipelines)
      for (const PlanStage& stage : pipeline.stages)
        for (const Recompute level : {stage.recompute.level(), stage.recompute.deep()})
          if (level != Recompute::none) features.insert(fmt::format("recompute_{}", to_string(level)));
  }
  Random split_random(options.seed * 198491317 + static_cast<uint64_t>(options.index));
  draw_sequence_parallel(options, split_random, plan);
  if (options.sequence_parallel) plan.sequence_parallel = true;
  if (plan.sequence_parallel && has_tensor_parallelism(plan)) features.insert("sequence");
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      const int ring = model.ring_degree(stage.shape);
      if (ring > 1) features.insert(fmt::format("ring_{}", ring));
      if (stage.shape.cp > ring) features.insert("context");
    }
  Random delay_random(options.seed * 86028157 + static_cast<uint64_t>(options.index));
  if (wants(options, PlanFeature::split_backward, delay_random() % 3 == 0))
    draw_weight_delays(delay_random, plan);
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      if (stage.weight_delay != kWholeBackward)
        features.insert(fmt::format("weight_delay_{}", stage.weight_delay));
  Random offload_random(options.seed * 67867967 + static_cast<uint64_t>(options.index));
  if (wants(options, PlanFeature::offload, offload_random() % 3 == 0)) draw_offload(offload_random, plan);
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) {
      if (offloads_optimizer(stage)) features.insert("offload");
      if (stage.recompute.offloads()) features.insert("offload_inputs");
    }
  Random group_zero_random(options.seed * 573259391 + static_cast<uint64_t>(options.index));
  if (wants(options, PlanFeature::hybrid_zero, group_zero_random() % 2 == 0))
    draw_zero_group(group_zero_random, result.job, plan);
  if (plan.zero != Zero::none)
    features.insert(plan.zero_group > 0 ? fmt::format("{}_of_{}", short_name(plan.zero), plan.zero_group)
                                        : short_name(plan.zero));
  if (plan.interleave > 1) features.insert(fmt::format("interleave_{}", plan.interleave));

  std::set<std::vector<int>> cuts;
  std::set<int> degrees;
  for (const PlanPipeline& pipeline : plan.pipelines) {
    std::vector<int> cut;
    for (const PlanStage& stage : pipeline.stages) {
      cut.push_back(stage.end_layer);
      degrees.insert(stage.shape.tp);
    }
    cuts.insert(cut);
  }
  if (cuts.size() > 1) features.insert("cuts_differ");
  if (degrees.size() > 1) features.insert("mixed_tp");
  if (std::set<int>(shares.begin(), shares.end()).size() > 1) features.insert("microbatches_differ");
  if (missing) features.insert("smaller_last");
  for (const int tp : degrees) {
    if (model.vocabulary % tp) features.insert("padded_vocabulary");
  }
  const int64_t message = row_bytes * model.sequence;
  if (most_stages > 1) features.insert(fmt::format("message_{}KiB", message / 1024));
  if (options.resume || options.lose_ranks) {
    Random second_random(options.seed * 32452843 + static_cast<uint64_t>(options.index));
    result.second_plan = draw_second_plan(second_random, result.job, plan, heads, options.most_ranks);
    draw_sequence_parallel(options, split_random, *result.second_plan);
    if (offload_random() % 3 == 0) draw_offload(offload_random, *result.second_plan);
    if (group_zero_random() % 2 == 0) draw_zero_group(group_zero_random, result.job, *result.second_plan);
    result.layout += " > " + layout_of(*result.second_plan);
    training.steps = 2 * result.steps;
    if (result.second_plan->zero != Zero::none)
      features.insert("then_" + short_name(result.second_plan->zero));
    if (options.lose_ranks) {
      result.third_plan = draw_second_plan(second_random, result.job, plan, heads, options.most_ranks);
      draw_sequence_parallel(options, split_random, *result.third_plan);
      if (group_zero_random() % 2 == 0) draw_zero_group(group_zero_random, result.job, *result.third_plan);
      result.layout += " > " + layout_of(*result.third_plan);
    }
  }
  result.features = fmt::format("{}", fmt::join(features, ";"));
  return result;
}

TokenData Case::data() const {
  Random random(job.training.seed ^ 0x5eed);
  TokensInMemory memory;
  memory.tokens.resize(static_cast<std::size_t>(job.model.sequence) * 97 + 1);
  for (uint16_t& token : memory.tokens)
    token = static_cast<uint16_t>(random() % static_cast<uint64_t>(job.model.vocabulary));
  // Documents of single tokens, of a few, and longer than a sequence.
  const auto end = static_cast<int64_t>(memory.tokens.size());
  for (int64_t start = 0; job.data.document_mask && start < end;) {
    memory.document_starts.push_back(start);
    start += between(random, 1, random() % 2 == 0 ? 6 : 2 * job.model.sequence);
  }
  for (int64_t first = 0; job.training.task == Task::sft && first < end;) {
    const int64_t answer = first + between(random, 0, 9);
    first = answer + between(random, 1, 9);
    memory.answers.emplace_back(answer, first);
  }
  return TokenData::in_memory(std::move(memory), job);
}

}  // namespace sailor::equality
