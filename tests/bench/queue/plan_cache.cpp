#include "tests/bench/queue/plan_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/error.h"
#include "tests/bench/evaluation/uniform_plans.h"
#include "tests/bench/scenario.h"

namespace sailor::bench {

std::vector<StudyModel> load_models(const std::string& path, const Snapshot& cluster) {
  std::vector<StudyModel> models;
  for (const CsvRow& row : read_csv(path)) {
    std::string spec = fmt::format("model: {{name: {}, family: {}", row.text("model"), row.text("family"));
    for (const char* key : {"layers", "hidden", "heads", "feed_forward", "sequence", "vocabulary"})
      spec += fmt::format(", {}: {}", key, row.text(key));
    if (row.text("kv_heads") != row.text("heads"))
      spec += fmt::format(", kv_heads: {}", row.text("kv_heads"));
    // Elastic, so that plans are those that can grow.
    spec += fmt::format(
        "}}\ntraining: {{global_batch: {}, precision: bf16, steps: 1, optimizer: {{name: adamw}}}}\n"
        "data: {{train: none.bin}}\ncheckpoint: {{directory: none, every_steps: 1}}\n"
        "elastic: {{enabled: true}}\nobjective: throughput\n",
        row.text("global_batch"));
    models.push_back({row.text("model"), std::make_unique<PlanningInputs>(load_inputs(
                                             parse_job_spec(spec, path), SiteConfig{}, PlanOverrides{},
                                             [&](const SiteConfig&) { return cluster; }))});
  }
  return models;
}

PlanCache::PlanCache(const std::vector<StudyModel>& models, std::vector<NodeKind> kinds)
    : models_(models), kinds_(std::move(kinds)) {
  for (size_t i = 0; i < kinds_.size(); ++i)
    for (const std::string& name : kinds_[i].names) kind_of_[name] = i;
}

SearchResult PlanCache::search(size_t model, const Snapshot& nodes) {
  constexpr double kEffort_s = 0.1;
  std::vector<std::vector<std::string>> names(kinds_.size());
  for (const SnapshotNode& node : nodes.nodes) names[kind_of_.at(node.name)].push_back(node.name);
  Counts counts;
  std::map<std::string, std::string> actual;  // names, by those of the search
  for (size_t i = 0; i < kinds_.size(); ++i) {
    counts.push_back(static_cast<int>(names[i].size()));
    for (size_t k = 0; k < names[i].size(); ++k) actual[kinds_[i].names[k]] = names[i][k];
  }
  auto found = results_.find({model, counts});
  if (found == results_.end()) {
    const PlanningInputs& inputs = *models_[model].inputs;
    Snapshot first = inputs.snapshot;
    std::erase_if(first.nodes, [&](const SnapshotNode& node) { return !actual.contains(node.name); });
    PlanOptions options;
    options.top_k = 1;
    options.explain = false;
    options.effort_limit_s = kEffort_s;
    options.time_limit_s = 60;
    found =
        results_.emplace(std::make_pair(model, counts), sailor::search(inputs.context(first), options)).first;
  }
  SearchResult result = found->second;
  for (Candidate& candidate : result.candidates)
    for (PlanPipeline& pipeline : candidate.plan.pipelines)
      for (PlanStage& stage : pipeline.stages) stage.node = actual.at(stage.node);
  return result;
}

std::optional<Candidate> hand_written(const PlanningContext& context) {
  const int in_node = static_cast<int>(context.snapshot.nodes.front().free_gpus.size());
  const int gpus = in_node * static_cast<int>(context.snapshot.nodes.size());
  const int least_tp = 1, most_stages = 4, most_microbatch = 8;
  for (const Recompute recompute : {Recompute::none, Recompute::full}) {
    for (int together = least_tp; together <= in_node * most_stages; together *= 2) {
      const int tp = std::min(together, in_node), stages = together / tp;
      if (gpus % together != 0 || in_node % tp != 0) continue;
      const std::vector<PlanStage> groups = tp_groups(context.snapshot, tp);
      for (int microbatch = most_microbatch; microbatch >= 1; microbatch /= 2) {
        Plan plan = uniform_plan(context.job, groups, stages, microbatch, Neighbours::replicas);
        for (PlanPipeline& pipeline : plan.pipelines)
          for (PlanStage& stage : pipeline.stages) stage.recompute = recompute;
        try {
          Prediction prediction = simulate(context, plan);
          if (prediction.fits) return Candidate{std::move(plan), std::move(prediction)};
        } catch (const InputError&) {  // no such cell
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace sailor::bench
