// A measured training run: the model, framework and plan, and the measured values. Every run of the trainer
// writes one; converters make them from published runs; `sailor validate` compares predictions with them.
// Plain value type.
//
// The JSON form (one object; a data set is a directory of *.json files or one *.jsonl file, a run a line):
//     {"sailor_run": 1, "name": "row 17", "framework": "NAME", "options": {"sequence_parallel": true},
//      "platform": "NAME", "precision": "bf16", "family": "gpt2",
//      "model": {"layers": 24, "hidden": 1024, "heads": 16, "sequence": 2048, "vocabulary": 50304},
//      "plan": {"sailor_plan": 1, ...},
// "measured": {"status": "ok", "iteration_s": [1.23], "peak_memory_bytes": [24000000000]}} `framework` names
// a framework description; `options` overrides keys of that description for this run. `platform` names the
// network and the calibrated constants of the machines. Several measurements of one run are in one list and
// are scored by their mean.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/transformer_shape.h"

namespace sailor {

struct MeasuredRun {
  std::string name;
  Where where;  // of the record, or of its source row
  std::string framework;
  std::map<std::string, std::string> options;
  std::string platform;
  Precision precision = Precision::bf16;
  std::string model;
  std::string family;  // of a run of our trainer: model family, for its profiles; may be empty
  TransformerShape shape;
  Plan plan;

  bool ran = true;  // false: the run failed, for any reason
  std::vector<double> iteration_s;
  std::vector<double> peak_memory_bytes;
  // The stage whose ranks were measured (from the end if negative); nothing = the rank with the highest peak.
  std::optional<int> memory_stage;
  std::optional<double> other_prediction_s;  // prediction of another simulator, for comparison

  std::optional<double> measured_s() const;      // mean; nothing if not measured
  std::optional<double> measured_bytes() const;  // mean
};

MeasuredRun parse_measured_run(const std::string& json, const std::string& file_name);
std::string to_json(const MeasuredRun& record, int indent = -1);
// All runs of a *.json file, a *.jsonl file, or a directory of such files, sorted by name. Throws InputError.
std::vector<MeasuredRun> load_measured_runs(const std::string& path);

}  // namespace sailor
