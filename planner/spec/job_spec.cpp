#include "planner/spec/job_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/model_directory.h"
#include "planner/spec/model_family.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int kMaxLayers = 1024;  // the search's tables are quadratic in it
constexpr int kMaxWidth = 10'000'000;
constexpr int kMaxSequence = 100'000'000;
constexpr int kMostGpus = 100'000'000;
constexpr int64_t kMaxCount = 1'000'000'000'000;
constexpr int64_t kMaxLossScale = int64_t{1} << 60;
constexpr const char* kInBaseDirectory = "job.yaml";

// Families are files of the trainer and become parts of names: plain identifiers.
std::string read_family(const Field& field) {
  std::string family = field.text();
  bool good = family.size() <= 64 && std::all_of(family.begin(), family.end(), [](char c) {
                return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-';
              });
  if (!good) field.fail_type("a name of letters, digits, \"-\" and \"_\"");
  return family;
}

// The choices of the family, and the keys that a job spec of it may set. A family that is not known may have
// any of them.
void read_choices(const MapField& map, ModelSpec& model) {
  const ModelFamily* family = find_family(model.family);
  for (const ModelKey& key : all_model_keys()) {
    const std::optional<Field> field = map.optional(key.name);
    if (!field) continue;
    if (family && !family->has(key.name))
      field->fail("models of family " + in_quotes(model.family) + " have no such thing, leave the key out");
    key.read(*field, model);
  }
}

// Keys of `model:` for the shape, which a model directory has for itself.
std::vector<std::string> shape_keys() {
  std::vector<std::string> keys = {"family",       "layers",     "hidden",          "heads",
                                   "feed_forward", "vocabulary", "tied_embeddings", "norm_epsilon"};
  for (const ModelKey& key : all_model_keys()) keys.push_back(key.name);
  return keys;
}

// `model: {from: DIRECTORY}`: the shape is the directory's, and only what is no part of it may be chosen.
ModelSpec read_model_from(const MapField& map, const Field& from, const std::string& base_file) {
  for (const std::string& key : shape_keys()) {
    if (auto given = map.optional(key))
      given->fail("the model directory of model.from sets this already, remove one of the two");
  }
  ModelSpec model = read_model_config(relative_to_file(from.text(), base_file), from);
  if (auto sequence = map.optional("sequence")) {
    const int most = model.learned_positions() ? model.positions : kMaxSequence;
    model.sequence = sequence->integer<int>(1, most);
  }
  return model;
}

ModelSpec read_model(const Field& field, const std::string& base_file) {
  std::vector<std::string> known = shape_keys();
  known.insert(known.end(), {"name", "sequence", "dropout", "from"});
  MapField map(field, known);
  ModelSpec model;
  if (auto from = map.optional("from")) {
    model = read_model_from(map, *from, base_file);
  } else {
    const auto family = map.optional("family");
    set_family(model, family ? read_family(*family) : kAnyDecoder);
    model.layers = map.required("layers").integer<int>(1, kMaxLayers);
    model.hidden = map.required("hidden").integer<int>(1, kMaxWidth);
    model.heads = map.required("heads").integer<int>(1, kMaxWidth);
    model.feed_forward = 4 * model.hidden;
    if (auto width = map.optional("feed_forward")) model.feed_forward = width->integer<int>(1, 4 * kMaxWidth);
    model.sequence = map.required("sequence").integer<int>(1, kMaxSequence);
    model.vocabulary = map.required("vocabulary").integer<int>(1, 100'000'000);
    if (auto tied = map.optional("tied_embeddings")) model.tied_embeddings = tied->boolean();
    if (auto epsilon = map.optional("norm_epsilon")) {
      model.norm_epsilon = epsilon->number(0, 1);
      if (!(model.norm_epsilon > 0)) epsilon->fail("must be above 0");
    }
    read_choices(map, model);
    if (const auto problem = find_problem(model))
      map.optional(problem->key).value_or(map.field()).fail(problem->text);
  }
  if (auto dropout = map.optional("dropout")) {
    model.dropout = dropout->number(0, 1);
    if (model.dropout == 1) dropout->fail("must be below 1");
  }
  model.name = fmt::format("{}-{}x{}", model.family, model.layers, model.hidden);
  if (auto name = map.optional("name")) model.name = name->name();
  return model;
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> names = {"adamw", "muon", "sgd"};
  return names;
}

const std::vector<std::string>& optimizer_keys() {
  static const std::vector<std::string> keys = {"name",    "lr",       "weight_decay", "beta1", "beta2",
                                                "epsilon", "momentum", "nesterov",     "groups"};
  return keys;
}

OptimizerSpec read_optimizer(const Field& field) {
  MapField map(field, optimizer_keys());
  OptimizerSpec optimizer;
  if (auto name = map.optional("name")) {
    name->choice(optimizer_names());
    optimizer.name = name->text();
  }
  if (optimizer.orthogonalizes()) {
    optimizer.momentum = 0.95;
    optimizer.nesterov = true;
  }
  // A key of another optimizer would have no effect, which its author does not expect.
  const std::vector<std::string> adamw = {"adamw", "muon"}, with_momentum = {"muon", "sgd"};
  auto of = [&](const std::vector<std::string>& owners, const char* key) {
    auto value = map.optional(key);
    if (value && std::find(owners.begin(), owners.end(), optimizer.name) == owners.end())
      value->fail(fmt::format("belongs to optimizer {}, not to {}; leave it out", fmt::join(owners, " or "),
                              optimizer.name));
    return value;
  };
  auto below_one = [&](const std::vector<std::string>& owners, const char* key, double& target) {
    auto value = of(owners, key);
    if (!value) return;
    target = value->number(0, 1);
    if (target == 1) value->fail("must be below 1");
  };
  if (auto lr = map.optional("lr")) optimizer.lr = lr->positive();
  if (auto decay = map.optional("weight_decay")) optimizer.weight_decay = decay->non_negative();
  below_one(adamw, "beta1", optimizer.beta1);
  below_one(adamw, "beta2", optimizer.beta2);
  if (auto epsilon = of(adamw, "epsilon")) optimizer.epsilon = epsilon->positive();
  below_one(with_momentum, "momentum", optimizer.momentum);
  if (auto nesterov = of(with_momentum, "nesterov")) {
    optimizer.nesterov = nesterov->boolean();
    if (optimizer.nesterov && optimizer.momentum == 0) nesterov->fail("needs a momentum above 0");
  }
  return optimizer;
}

// After the model and the adapters: the groups are of what is trained.
std::vector<ParameterGroup> read_groups(const Field& field, const TrainingSpec& training,
                                        const ModelSpec& model) {
  std::vector<ParameterGroup> groups;
  std::vector<Field> patterns;
  for (const Field& item : field.items()) {
    const MapField map(item, {"match", "lr_scale", "weight_decay"});
    patterns.push_back(map.required("match"));
    ParameterGroup& group = groups.emplace_back(ParameterGroup{patterns.back().text()});
    const auto scale = map.optional("lr_scale"), decay = map.optional("weight_decay");
    if (scale) group.lr_scale = scale->non_negative();
    if (decay) group.weight_decay = decay->non_negative();
    if (!scale && !decay) map.fail("changes nothing; add lr_scale or weight_decay");
  }
  if (groups.empty()) field.fail("lists no groups; omit the key");
  if (const auto problem = find_problem(groups, model, training.lora))
    patterns[problem->group].fail(problem->text);
  return groups;
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names = {"constant", "linear", "cosine", "wsd", "inverse_sqrt"};
  return names;
}

// `wsd`: the last of the steps up to `end`, a tenth of them unless the job says otherwise.
void read_annealing(const MapField& map, int64_t end, ScheduleSpec& schedule) {
  for (const char* key : {"annealing_steps", "annealing"}) {
    const auto given = map.optional(key);
    if (given && schedule.name != "wsd")
      given->fail(fmt::format("belongs to schedule wsd, not to {}; leave it out", schedule.name));
  }
  if (schedule.name != "wsd") return;
  schedule.annealing_steps = std::max<int64_t>(1, end / 10);
  if (auto steps = map.optional("annealing_steps"))
    schedule.annealing_steps = steps->integer<int64_t>(1, kMaxCount);
  if (schedule.warmup_steps + schedule.annealing_steps > end)
    map.fail(fmt::format("warmup_steps ({}) and annealing_steps ({}) must not be more than all steps ({})",
                         schedule.warmup_steps, schedule.annealing_steps, end));
  static const std::vector<std::string> shapes = {"linear", "cosine", "1-sqrt"};
  if (auto shape = map.optional("annealing")) schedule.annealing = shapes[shape->choice(shapes)];
}

// After optimizer and steps: the schedule is between them.
ScheduleSpec read_schedule(const Field& field, const TrainingSpec& training) {
  MapField map(field, {"name", "warmup_steps", "decay_steps", "min_lr", "annealing_steps", "annealing"});
  ScheduleSpec schedule;
  schedule.name = schedule_names()[map.required("name").choice(schedule_names())];
  if (auto steps = map.optional("warmup_steps"))
    schedule.warmup_steps = steps->integer<int64_t>(0, kMaxCount);
  const bool decays = schedule.name != "constant", ends = decays && schedule.name != "inverse_sqrt";
  if (auto steps = map.optional("decay_steps")) {
    if (!decays) steps->fail("a constant schedule does not decay; leave it out, or choose linear or cosine");
    if (!ends) steps->fail("the decay of inverse_sqrt has no end; leave it out");
    schedule.decay_steps = steps->integer<int64_t>(1, kMaxCount);
  }
  const int64_t end = schedule.decay_steps > 0 ? schedule.decay_steps : training.steps;
  if (ends && schedule.warmup_steps >= end)
    field.fail(fmt::format("warmup_steps ({}) must be below {} ({})", schedule.warmup_steps,
                           schedule.decay_steps > 0 ? "decay_steps" : "training.steps", end));
  if (auto lr = map.optional("min_lr")) {
    if (!decays) lr->fail("a constant schedule does not decay; leave it out, or choose linear or cosine");
    schedule.min_lr = lr->non_negative();
    if (schedule.min_lr > training.optimizer.lr)
      lr->fail(fmt::format("must be at most the optimizer's lr, {}", training.optimizer.lr));
  }
  read_annealing(map, end, schedule);
  return schedule;
}

ValidationSpec read_validation(const Field& field) {
  MapField map(field, {"every_steps", "sequences"});
  ValidationSpec validation;
  if (auto steps = map.optional("every_steps"))
    validation.every_steps = steps->integer<int64_t>(1, kMaxCount);
  if (auto sequences = map.optional("sequences"))
    validation.sequences = sequences->integer<int64_t>(1, kMaxCount);
  return validation;
}

int64_t read_power_of_two(const Field& field) {
  const auto value = field.integer<int64_t>(1, kMaxLossScale);
  if (!std::has_single_bit(static_cast<uint64_t>(value)))
    field.fail(fmt::format(
        "must be a power of two, such as 65536, is {}; only then does scaling round nothing", value));
  return value;
}

void read_training_precision(const Field& field, TrainingSpec& training) {
  std::vector<std::string> names = precision_names();
  names.emplace_back(k16Bit);
  const size_t choice = field.choice(names);
  if (choice < kPrecisions.size()) {
    training.precision = kPrecisions[choice].precision;
  } else {
    training.precision = Precision::bf16;
    training.fallback_precision = Precision::fp16;
  }
}

LossScaleSpec read_loss_scale(const Field& field, const TrainingSpec& training) {
  if (!kind_of(training.fallback_precision.value_or(training.precision)).scales_loss)
    field.fail(fmt::format("belongs to precision fp16, not to {}; leave it out", training.precision_name()));
  MapField map(field, {"initial", "window", "hysteresis", "minimum"});
  LossScaleSpec scale;
  if (auto initial = map.optional("initial")) scale.initial = read_power_of_two(*initial);
  if (auto window = map.optional("window")) scale.window = window->integer<int64_t>(1, kMaxCount);
  if (auto hysteresis = map.optional("hysteresis")) scale.hysteresis = hysteresis->integer<int>(1, 1'000'000);
  if (auto minimum = map.optional("minimum")) {
    scale.minimum = read_power_of_two(*minimum);
    if (scale.minimum > scale.initial)
      minimum->fail(fmt::format("must be at most the initial scale, {}", scale.initial));
  }
  return scale;
}

SpikeSpec read_on_spike(const Field& field) {
  MapField map(field, {"kind", "factor", "window", "most_in_a_row"});
  SpikeSpec spike;
  if (auto kind = map.optional("kind")) kind->choice({"skip"});
  if (auto factor = map.optional("factor")) {
    spike.factor = factor->positive();
    if (spike.factor < 1) factor->fail("must be at least 1, or most steps would be skipped");
  }
  if (auto window = map.optional("window")) spike.window = window->integer<int>(1, 100'000);
  if (auto most = map.optional("most_in_a_row")) spike.most_in_a_row = most->integer<int>(1, 1'000'000);
  return spike;
}

EmaSpec read_ema(const Field& field) {
  MapField map(field, {"decay", "validate"});
  EmaSpec ema;
  const Field decay = map.required("decay");
  ema.decay = decay.number(0, 1);
  if (ema.decay == 1) decay.fail("must be below 1, or the average never changes");
  if (auto validate = map.optional("validate")) ema.validate = validate->boolean();
  return ema;
}

ReplicaSpec read_replicas(const Field& field) {
  MapField map(field, {"check_every", "on_divergence"});
  ReplicaSpec replicas;
  if (auto every = map.optional("check_every")) replicas.check_every = every->integer<int64_t>(0, kMaxCount);
  if (auto choice = map.optional("on_divergence"))
    replicas.on_divergence = static_cast<OnDivergence>(choice->choice({"report", "heal", "stop"}));
  return replicas;
}

TrainingSpec read_training(const Field& field, const ModelSpec& model) {
  MapField map(field, {"task", "global_batch", "precision", "loss_scale", "steps", "seed", "deterministic",
                       "optimizer", "schedule", "clip_grad_norm", "z_loss", "on_spike", "ema", "replicas",
                       "validation", "lora"});
  TrainingSpec training;
  if (auto task = map.optional("task"))
    training.task = static_cast<Task>(task->choice({"pretraining", "sft"}));
  training.global_batch = map.required("global_batch").integer<int64_t>(1, 1'000'000'000);
  if (auto precision = map.optional("precision")) read_training_precision(*precision, training);
  if (auto scale = map.optional("loss_scale")) training.loss_scale = read_loss_scale(*scale, training);
  training.steps = map.required("steps").integer<int64_t>(1, kMaxCount);
  if (auto seed = map.optional("seed"))
    training.seed = static_cast<uint64_t>(seed->integer<int64_t>(0, INT64_MAX));
  if (auto choice = map.optional("deterministic")) training.deterministic = choice->boolean();
  if (auto optimizer = map.optional("optimizer")) training.optimizer = read_optimizer(*optimizer);
  if (auto schedule = map.optional("schedule")) training.schedule = read_schedule(*schedule, training);
  if (auto norm = map.optional("clip_grad_norm")) training.clip_grad_norm = norm->positive();
  if (auto factor = map.optional("z_loss")) training.z_loss = factor->non_negative();
  if (auto spike = map.optional("on_spike")) training.on_spike = read_on_spike(*spike);
  if (auto ema = map.optional("ema")) training.ema = read_ema(*ema);
  if (auto replicas = map.optional("replicas")) training.replicas = read_replicas(*replicas);
  if (auto validation = map.optional("validation")) training.validation = read_validation(*validation);
  if (auto lora = map.optional("lora")) {
    if (training.optimizer.orthogonalizes())
      lora->fail("adapters are not trained with muon; use training.optimizer.name adamw or sgd");
    training.lora = read_lora(*lora, model);
  }
  if (auto optimizer = map.optional("optimizer"))
    if (auto groups = MapField(*optimizer, optimizer_keys()).optional("groups"))
      training.optimizer.groups = read_groups(*groups, training, model);
  return training;
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names = {"auto",     "nanogpt", "uint32",  "llmc",
                                                 "megatron", "bytes",   "mosaicml"};
  return names;
}

std::vector<DataSource> read_sources(const Field& field) {
  if (!field.is_sequence()) return {{field.text()}};
  std::vector<DataSource> sources;
  for (const Field& item : field.items()) {
    const MapField map(item, {"files", "weight"});
    sources.push_back({map.required("files").text(), map.required("weight").positive()});
  }
  if (sources.empty()) field.fail("names no files");
  return sources;
}

std::vector<ValidationSet> read_validation_sets(const Field& field) {
  if (!field.is_map()) return {{"", field.text()}};
  std::vector<ValidationSet> sets;
  for (const auto& [name, files] : field.entries()) {
    const bool good = !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
             c == '-';
    });
    if (!good) files.fail("name the set with letters, digits, \"-\" and \"_\"");
    sets.push_back({name, files.text()});
  }
  if (sets.empty()) field.fail("names no files; omit the key");
  return sets;
}

DataSpec read_data(const Field& field) {
  static const std::vector<std::string> types = {"int8",  "int16",  "int32",  "int64",
                                                 "uint8", "uint16", "uint32", "uint64"};
  MapField map(field, {"train", "format", "column", "token_encoding_type", "validation", "document_mask"});
  DataSpec data;
  data.train = read_sources(map.required("train"));
  if (auto format = map.optional("format")) data.format = format_names()[format->choice(format_names())];
  if (auto column = map.optional("column")) data.column = column->text();
  if (auto type = map.optional("token_encoding_type")) data.token_encoding_type = types[type->choice(types)];
  if (auto validation = map.optional("validation")) data.validation = read_validation_sets(*validation);
  if (auto mask = map.optional("document_mask")) data.document_mask = mask->boolean();
  return data;
}

MetricsSpec read_metrics(const Field& field, const TrainingSpec& training) {
  MapField map(field, {"tensorboard", "trace_step", "gradient_statistics_every"});
  MetricsSpec metrics;
  if (auto directory = map.optional("tensorboard")) metrics.tensorboard = directory->text();
  if (auto step = map.optional("trace_step")) metrics.trace_step = step->integer<int64_t>(1, training.steps);
  if (auto every = map.optional("gradient_statistics_every"))
    metrics.gradient_statistics_every = every->integer<int64_t>(0, kMaxCount);
  return metrics;
}

std::vector<std::string> read_names(const Field& field) {
  std::vector<std::string> names;
  for (const Field& item : field.items()) {
    names.push_back(item.name());
    if (std::count(names.begin(), names.end(), names.back()) > 1)
      item.fail(in_quotes(names.back()) + " is listed twice");
  }
  if (names.empty()) field.fail("an empty list allows nothing; omit the key to allow all");
  return names;
}

ResourceSpec read_resources(const Field& field) {
  MapField map(field, {"max_gpus", "zones", "partitions"});
  ResourceSpec resources;
  if (auto limits = map.optional("max_gpus")) {
    for (const auto& [type, limit] : limits->entries()) {
      if (limit.is_map() && type != kTotalGpus) {
        for (const auto& [zone, in_zone] : limit.entries())
          resources.max_gpus_in_zone[type][zone] = in_zone.integer<int>(0, kMostGpus);
      } else {
        resources.max_gpus[type] = limit.integer<int>(0, kMostGpus);
      }
    }
  }
  if (auto zones = map.optional("zones")) resources.zones = read_names(*zones);
  if (auto partitions = map.optional("partitions")) resources.partitions = read_names(*partitions);
  return resources;
}

ConstraintSpec read_constraints(const Field& field) {
  std::vector<std::string> known = {"min_iterations_per_s"};
  for (const Expense expense : kExpenses) known.push_back(limit_key(expense));
  MapField map(field, known);
  ConstraintSpec constraints;
  for (const Expense expense : kExpenses)
    if (auto most = map.optional(limit_key(expense)))
      constraints.most[expense] = most->quantity_above_0(kind_of(expense).parse, kind_of(expense).expected);
  if (auto rate = map.optional("min_iterations_per_s")) constraints.min_iterations_per_s = rate->positive();
  return constraints;
}

CheckpointSpec read_checkpoint(const Field& field, bool elastic) {
  MapField map(field, {"directory", "every_steps", "keep", "on_error", "memory_copies"});
  CheckpointSpec checkpoint;
  checkpoint.directory = map.required("directory").text();
  if (auto every = map.optional("every_steps"))
    checkpoint.every_steps = every->integer<int64_t>(0, kMaxCount);
  if (auto keep = map.optional("keep")) checkpoint.keep = keep->integer<int>(1, 1'000'000);
  if (auto on_error = map.optional("on_error"))
    checkpoint.stop_on_error = on_error->choice({"stop", "continue"}) == 0;
  checkpoint.memory_copies = elastic ? MemoryCopies::neighbour : MemoryCopies::own;
  if (auto copies = map.optional("memory_copies"))
    checkpoint.memory_copies = static_cast<MemoryCopies>(copies->choice({"none", "own", "neighbour"}));
  return checkpoint;
}

// What only Sailor's own trainer does.
void refuse_for_other_trainers(const JobSpec& job) {
  if (job.trainer.own()) return;
  for (const char* key :
       {"training.lora", "training.task", "training.optimizer.groups", "training.z_loss", "training.on_spike",
        "training.ema", "training.replicas", "data", "checkpoint", "metrics"})
    if (job.lines.contains(key))
      throw InputError(job.where(key),
                       fmt::format("{0}: is for Sailor's own trainer; remove it: {1} programs "
                                   "have settings of their own",
                                   key, job.trainer.kind));
}

void collect_lines(const DocumentNode& node, const std::string& path, std::map<std::string, int>& lines) {
  for (size_t i = 0; i < node.children.size(); ++i) {
    const DocumentEntry& entry = node.children[i];
    std::string child = node.kind == DocumentNode::Kind::sequence
                            ? fmt::format("{}[{}]", path, i)
                            : path + (path.empty() ? "" : ".") + entry.key;
    lines[child] = node.kind == DocumentNode::Kind::map ? entry.key_line : entry.node.line;
    collect_lines(entry.node, child, lines);
  }
}

}  // namespace

JobSpec parse_job_spec(const std::string& yaml, const std::string& file_name,
                       const std::string& base_directory) {
  Document document = parse_yaml(yaml, file_name);
  MapField map(Field(document), {"model", "training", "data", "resources", "objective", "constraints",
                                 "checkpoint", "elastic", "metrics", "trainer"});
  JobSpec job;
  job.file = file_name;
  job.model = read_model(map.required("model"),
                         base_directory.empty() ? file_name : base_directory + "/" + kInBaseDirectory);
  job.training = read_training(map.required("training"), job.model);
  if (auto data = map.optional("data")) job.data = read_data(*data);
  if (auto resources = map.optional("resources")) job.resources = read_resources(*resources);
  if (auto objective = map.optional("objective")) {
    job.objective = objective_at(objective->choice(objective_names()));
    job.objective_given = true;
  }
  if (auto constraints = map.optional("constraints")) job.constraints = read_constraints(*constraints);
  if (auto elastic = map.optional("elastic")) {
    MapField inner(*elastic, {"enabled", "wait", "lease", "grow_every", "yield"});
    job.elastic.enabled = inner.required("enabled").boolean();
    if (auto yield = inner.optional("yield")) job.elastic.yield = yield->boolean();
    if (auto wait = inner.optional("wait")) job.elastic.wait_s = wait->duration_s();
    if (auto lease = inner.optional("lease")) {
      job.elastic.lease_s = lease->duration_s();
      if (job.elastic.lease_s < 2 || job.elastic.lease_s > 3600) lease->fail("must be between 2s and 1h");
    }
    if (auto every = inner.optional("grow_every")) {
      job.elastic.grow_every_s = every->duration_s();
      if (job.elastic.grow_every_s != 0 && job.elastic.grow_every_s < 1)
        every->fail("must be 0 (never) or at least 1s");
    }
  }
  if (auto checkpoint = map.optional("checkpoint"))
    job.checkpoint = read_checkpoint(*checkpoint, job.elastic.enabled);
  if (auto metrics = map.optional("metrics")) job.metrics = read_metrics(*metrics, job.training);
  if (auto trainer = map.optional("trainer")) job.trainer = read_trainer(*trainer);
  collect_lines(document.root, "", job.lines);
  refuse_for_other_trainers(job);
  if (job.lines.contains("training.validation") && job.data.validation.empty())
    throw InputError(job.where("training.validation"),
                     "training.validation: there is no validation data; name files in data.validation");
  return job;
}

JobSpec load_job_spec(const std::string& path, const std::string& base_directory) {
  return parse_job_spec(read_text_file(path), path, base_directory);
}

int ResourceSpec::most_gpus(const std::string& type, const std::string& zone) const {
  int most = std::numeric_limits<int>::max();
  for (const std::string& name : {type, std::string(kTotalGpus)})
    if (const auto limit = max_gpus.find(name); limit != max_gpus.end()) most = std::min(most, limit->second);
  if (const auto of_type = max_gpus_in_zone.find(type); of_type != max_gpus_in_zone.end())
    if (const auto limit = of_type->second.find(zone); limit != of_type->second.end())
      most = std::min(most, limit->second);
  return most;
}

std::vector<Expense> JobSpec::expenses() const {
  std::vector<Expense> out;
  for (const Expense expense : kExpenses)
    if (expense == Expense::cost || objective == Objective(expense) || constraints.most[expense])
      out.push_back(expense);
  return out;
}

Where JobSpec::where(const std::string& key) const {
  auto it = lines.find(key);
  return {file, it == lines.end() ? 0 : it->second};
}

}  // namespace sailor
