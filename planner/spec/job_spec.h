// The job spec: what an ML engineer asks for, one YAML file that is also a valid batch script.
//
// A JobSpec returned by load_job_spec() is complete and consistent in itself: every number is in range, and
// every name that the program knows is checked. Names that need other files (GPU types, zones, model
// directories) are checked where those files are read. Plain value type; thread-safe as such.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/error.h"
#include "planner/spec/lora_spec.h"
#include "planner/spec/model_spec.h"
#include "planner/spec/objective.h"
#include "planner/spec/parameter_groups.h"
#include "planner/spec/precision.h"
#include "planner/spec/trainer_spec.h"

namespace sailor {

struct OptimizerSpec {
  std::string name = "adamw";  // adamw | muon | sgd
  double lr = 3e-4;            // before the schedule
  double weight_decay = 0.0;   // of matrices
  double beta1 = 0.9;          // adamw, and muon for what it updates as adamw does; like the next two
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.0;  // muon (0.95 by default) and sgd, like the next, which needs a momentum
  bool nesterov = false;  // by default true with muon
  std::vector<ParameterGroup> groups;  // the first that matches a parameter applies

  bool orthogonalizes() const { return name == "muon"; }

  bool operator==(const OptimizerSpec&) const = default;
};

// The learning rate of a step; see trainer/optim/lr_schedule.h.
struct ScheduleSpec {
  std::string name = "constant";     // constant | linear | cosine | wsd | inverse_sqrt
  int64_t warmup_steps = 0;          // linear, from near 0 to the optimizer's lr
  int64_t decay_steps = 0;           // step (warm-up included) that reaches min_lr; 0 = the job's last
  double min_lr = 0;                 // at the end of the decay, and after it
  int64_t annealing_steps = 0;       // wsd only, like the next: the last of the decay steps
  std::string annealing = "linear";  // linear | cosine | 1-sqrt

  bool operator==(const ScheduleSpec&) const = default;
};

// The dynamic loss scale of precision fp16; see trainer/optim/loss_scaler.h. Scales are powers of two.
struct LossScaleSpec {
  int64_t initial = 65536;
  int64_t window = 1000;  // steps without overflow after which the scale is doubled
  int hysteresis = 2;     // overflows before the scale is halved for the first time
  int64_t minimum = 1;

  bool operator==(const LossScaleSpec&) const = default;
};

// When the loss on data.validation is computed.
struct ValidationSpec {
  int64_t every_steps = 1000;  // and after the last step
  int64_t sequences = 0;       // per validation; 0 = those of four iterations

  bool operator==(const ValidationSpec&) const = default;
};

// What the loss counts: every token, or answers of supervised fine-tuning.
enum class Task { pretraining, sft };

// Steps whose gradient is not to be trusted; see trainer/optim/spike_guard.h.
struct SpikeSpec {
  double factor = 10;      // of the median norm, above which a norm is a spike
  int window = 100;        // updates that the median is of
  int most_in_a_row = 10;  // skipped steps; one more ends the job

  bool operator==(const SpikeSpec&) const = default;
};

// What happens when ranks that hold the same part of the model come to hold different ones.
enum class OnDivergence { report, heal, stop };

// When replicas of the training state are compared; see trainer/parallel/replica_check.h.
struct ReplicaSpec {
  int64_t check_every = 1000;  // steps; 0 = never
  OnDivergence on_divergence = OnDivergence::report;

  bool operator==(const ReplicaSpec&) const = default;
};

// An exponential moving average of the trained parameters: average = decay average + (1 - decay) value after
// every update, from the initial values on.
struct EmaSpec {
  double decay = 0.999;
  bool validate = false;  // validation is of the average

  bool operator==(const EmaSpec&) const = default;
};

struct TrainingSpec {
  Task task = Task::pretraining;
  int64_t global_batch = 0;  // sequences per iteration; never changed by the planner
  Precision precision = Precision::fp32;
  // `16-bit`: the precision of plans with a GPU type that lacks the other one. Each plan says which it has.
  std::optional<Precision> fallback_precision;
  LossScaleSpec loss_scale;  // used if the precision scales the loss
  int64_t steps = 0;
  uint64_t seed = 1;           // initial weights, data order and dropout
  bool deterministic = false;  // only operations that give the same bits in every run, at some speed
  OptimizerSpec optimizer;
  ScheduleSpec schedule;
  std::optional<double> clip_grad_norm;  // maximum L2 norm of the whole model's gradient; empty = no clipping
  double z_loss = 0;                     // factor of the mean of log(Z)^2, Z the sum of exp(logit) of a token
  std::optional<SpikeSpec> on_spike;     // empty: a gradient that is not finite ends the job
  std::optional<EmaSpec> ema;
  ReplicaSpec replicas;
  ValidationSpec validation;
  std::optional<LoraSpec> lora;  // trains adapters of a frozen model; empty = trains the model

  bool allows(Precision any) const { return any == precision || any == fallback_precision; }
  // As in job specs.
  std::string precision_name() const { return fallback_precision ? k16Bit : to_string(precision); }

  bool operator==(const TrainingSpec&) const = default;
};

// Token files that are read as one array.
struct DataSource {
  std::string files;  // path or glob, relative to the job spec's directory
  double weight = 1;  // how many of the sequences are drawn from it, relative to other sources

  bool operator==(const DataSource&) const = default;
};

struct ValidationSet {
  std::string name;  // empty for the only one of a job that names none
  std::string files;

  bool operator==(const ValidationSet&) const = default;
};

struct DataSpec {
  std::vector<DataSource> train;  // several are a blend
  // auto | nanogpt | uint32 | llmc | megatron | bytes (trainer/data/token_file.h) | mosaicml
  // (trainer/data/mds)
  std::string format = "auto";
  std::string column;                         // of the tokens in MosaicML's format; empty = the usual names
  std::string token_encoding_type = "int64";  // of tokens in columns of bytes there
  std::vector<ValidationSet> validation;      // empty = none
  // Attention and positions end with a document, and no document's first token is predicted. Needs files that
  // mark documents.
  bool document_mask = false;  // sft has it anyway

  bool operator==(const DataSpec&) const = default;
};

// Output of a run in addition to its log.
struct MetricsSpec {
  std::string tensorboard;  // directory of event files; empty = `tensorboard` in the run directory
  int64_t trace_step = 0;   // iteration, from 1, whose timeline is written; 0 = none
  int64_t gradient_statistics_every = 0;  // steps between norms of layers and the gradient noise; 0 = never

  bool operator==(const MetricsSpec&) const = default;
};

// In place of a GPU type in quotas: all types together.
inline constexpr const char* kTotalGpus = "total";

struct ResourceSpec {
  // Quotas; absent types and zones are not limited. Quotas of a type, of the type in a zone and of all types
  // together all apply.
  std::map<std::string, int> max_gpus;  // [GPU type, or kTotalGpus], in all zones
  std::map<std::string, std::map<std::string, int>> max_gpus_in_zone;  // [GPU type][zone]
  std::vector<std::string> zones;                                      // empty = all
  std::vector<std::string> partitions;                                 // empty = all

  // Maximum GPUs of the type in the zone under these quotas alone; INT_MAX = unlimited.
  int most_gpus(const std::string& type, const std::string& zone) const;

  bool operator==(const ResourceSpec&) const = default;
};

struct ConstraintSpec {
  PerExpense<std::optional<double>> most;  // maximum of each expense per iteration
  std::optional<double> min_iterations_per_s;

  bool operator==(const ConstraintSpec&) const = default;
};

// Whose part of the last checkpoint's state a rank keeps in host memory.
enum class MemoryCopies { none, own, neighbour };

struct CheckpointSpec {
  std::string directory;  // empty = none
  int64_t every_steps = 0;
  int keep = 3;
  bool stop_on_error = true;  // when a checkpoint cannot be written; else training continues with a warning
  MemoryCopies memory_copies = MemoryCopies::own;  // by default `neighbour` in elastic jobs

  bool operator==(const CheckpointSpec&) const = default;
};

// What to do when nodes are lost or become free.
struct ElasticSpec {
  bool enabled = false;
  double wait_s = 600;  // wait for nodes while the remaining ones cannot run the job; then it fails
  double lease_s = 5;   // a rank or node that is silent for this long is lost
  // How often to look for free nodes that would help; 0 = never, the job keeps its nodes.
  double grow_every_s = 60;
  // Return helper nodes on which waiting jobs of others would start.
  bool yield = false;

  bool operator==(const ElasticSpec&) const = default;
};

struct JobSpec {
  std::string file;                  // the file that it was read from, as given
  std::map<std::string, int> lines;  // by dotted key, for later errors; empty for a spec made by a program
  ModelSpec model;
  TrainingSpec training;
  DataSpec data;
  ResourceSpec resources;
  Objective objective = Objective::throughput;
  bool objective_given = false;  // false: not in the file, and the site's default applies
  ConstraintSpec constraints;
  CheckpointSpec checkpoint;
  ElasticSpec elastic;
  MetricsSpec metrics;
  TrainerSpec trainer;

  double tokens_per_iteration() const { return static_cast<double>(training.global_batch) * model.sequence; }
  // The job's processes outlive changes of plan, and hand over their states.
  bool changes_in_place() const { return elastic.enabled && trainer.own(); }
  // Expenses that concern the user: cost, and those that are minimized or limited.
  std::vector<Expense> expenses() const;
  // Place of a dotted key (such as `resources.max_gpus.NAME`, `resources.zones[0]`) in the file; the file
  // itself when unknown.
  Where where(const std::string& key) const;

  bool operator==(const JobSpec&) const = default;
};

// Reads and checks a job spec. Throws InputError (file:line, dotted key, what to do) on any mistake; unknown
// keys name the nearest known one. `model.from` is relative to the file's directory, or to `base_directory`
// when the file is a copy from elsewhere.
JobSpec load_job_spec(const std::string& path, const std::string& base_directory = "");
JobSpec parse_job_spec(const std::string& yaml, const std::string& file_name,
                       const std::string& base_directory = "");

}  // namespace sailor
