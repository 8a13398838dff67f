// The job spec: what an ML engineer asks for, one YAML file that is also a valid batch script.
//
// A JobSpec that load_job_spec() returned is complete and consistent in itself: every number is in range,
// every name known to the program is known. Names that need other files (GPU types, zones, model directories)
// are checked where those files are read. Plain value type; thread-safe as such.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/error.h"

namespace sailor {

// Shape of a decoder-only transformer. Layer indices everywhere in the project: 0 = embedding, 1..layers =
// blocks, layers + 1 = final norm and head.
struct ModelSpec {
  std::string name;    // label in plans and tables; by default FAMILY-LAYERSxHIDDEN
  std::string family;  // a file in trainer/model/
  int layers = 0;      // transformer blocks
  int hidden = 0;
  int heads = 0;
  int feed_forward = 0;  // inner width of the MLP; 4 x hidden by default
  int sequence = 0;      // tokens per sequence
  int vocabulary = 0;    // entries of the tokenizer, before any padding

  int num_all_layers() const { return layers + 2; }
};

struct OptimizerSpec {
  std::string name = "adamw";  // adamw
  double lr = 3e-4;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

enum class Precision { fp32, fp64, bf16 };

struct TrainingSpec {
  int64_t global_batch = 0;  // sequences per iteration; never changed by the planner
  Precision precision = Precision::fp32;
  int64_t steps = 0;
  uint64_t seed = 1;  // initial weights and data order
  OptimizerSpec optimizer;
};

struct DataSpec {
  std::string train;               // path or glob of token files; relative to the job spec's directory
  std::string format = "nanogpt";  // nanogpt | bytes (a text file: one token per byte)
  std::string validation;          // empty = none
};

struct ResourceSpec {
  std::map<std::string, int>
      max_gpus;                    // by GPU type; a type that is absent is not limited. Empty map = no limits
  std::vector<std::string> zones;  // empty = all
  std::vector<std::string> partitions;  // empty = all
};

enum class Objective { throughput, cost };

struct ConstraintSpec {
  std::optional<double> max_usd_per_iteration;
  std::optional<double> min_iterations_per_s;
};

struct CheckpointSpec {
  std::string directory;  // empty = none
  int64_t every_steps = 0;
  int keep = 3;
};

struct ElasticSpec {
  bool enabled = false;
};

struct JobSpec {
  std::string file;  // where it was read from, as given
  std::map<std::string, int>
      lines;  // by dotted key, for errors that are found later; empty for a spec made by a program
  ModelSpec model;
  TrainingSpec training;
  DataSpec data;
  ResourceSpec resources;
  Objective objective = Objective::throughput;
  bool objective_given = false;  // false: the file names none, and a site's default applies
  ConstraintSpec constraints;
  CheckpointSpec checkpoint;
  ElasticSpec elastic;

  // Where a dotted key (such as `resources.max_gpus.NAME`, `resources.zones[0]`) stands in the file; the file
  // itself when unknown.
  Where where(const std::string& key) const;
};

// Reads and checks a job spec. Throws InputError (file:line, dotted key, what to do) on anything that is not
// exactly right; unknown keys name the nearest known one.
JobSpec load_job_spec(const std::string& path);
JobSpec parse_job_spec(const std::string& yaml, const std::string& file_name);

const char* to_string(Precision precision);
const char* to_string(Objective objective);
Objective parse_objective(const std::string& text);  // throws InputError
// Bytes of one element of weights and activations.
int element_bytes(Precision precision);

}  // namespace sailor
