#include "tests/bench/queue/plan_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "planner/plan/packed_plan.h"
#include "planner/simulator/simulate.h"
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

namespace {

constexpr double kEffort_s = 0.02;

int rounded_down(int nodes) {
  int step = 1;
  while (nodes >= 4 * step) step *= 2;
  return nodes / step * step;
}

}  // namespace

PlanCache::PlanCache(const std::vector<StudyModel>& models, std::vector<NodeKind> kinds,
                     const std::string& file)
    : models_(models), kinds_(std::move(kinds)) {
  for (size_t i = 0; i < kinds_.size(); ++i)
    for (const std::string& name : kinds_[i].names) kind_of_[name] = i;
  if (!file.empty()) read(file);
}

// Lines: the model, the numbers of nodes, and the packed plan or `none`.
void PlanCache::read(const std::string& file) {
  std::string head = fmt::format("plans of {} kinds", kinds_.size());
  for (const NodeKind& kind : kinds_)
    head += fmt::format(" {}x{}:{}", kind.nodes(), kind.gpu_type, kind.gpus);
  for (const StudyModel& model : models_) head += " " + model.name;
  std::ifstream in(file);
  std::string line;
  const bool is_new = !std::getline(in, line);
  if (!is_new && line != head) throw InputError({file, 1}, "these are not plans for this cluster");
  for (int number = 2; std::getline(in, line); ++number) {
    std::istringstream words(line);
    size_t model = 0;
    Counts counts(kinds_.size());
    std::string plan;
    words >> model;
    for (int& count : counts) words >> count;
    if (!(words >> plan) || model >= models_.size()) throw InputError({file, number}, "is no plan");
    SearchResult& result = results_[{model, counts}];
    result.status = plan == "none" ? SearchStatus::infeasible : SearchStatus::found;
    if (plan == "none") continue;
    Candidate candidate{unpack_plan(plan, file), {}};
    candidate.prediction = simulate(models_[model].inputs->context(), candidate.plan);
    result.candidates.push_back(std::move(candidate));
  }
  file_.open(file, std::ios::app);
  if (is_new) file_ << head << std::endl;
}

SearchResult PlanCache::run(size_t model, const Snapshot& nodes) {
  ++searches_;
  PlanOptions options;
  options.top_k = 1;
  options.explain = false;
  options.effort_limit_s = kEffort_s;
  options.time_limit_s = 60;
  return sailor::search(models_[model].inputs->context(nodes), options);
}

SearchResult PlanCache::search(size_t model, const Snapshot& nodes) {
  std::vector<std::vector<std::string>> names(kinds_.size());
  for (const SnapshotNode& node : nodes.nodes) names[kind_of_.at(node.name)].push_back(node.name);
  Counts counts;
  std::map<std::string, std::string> actual;  // names, by those of the search
  for (size_t i = 0; i < kinds_.size(); ++i) {
    counts.push_back(rounded_down(static_cast<int>(names[i].size())));
    for (size_t k = 0; k < static_cast<size_t>(counts[i]); ++k) actual[kinds_[i].names[k]] = names[i][k];
  }
  auto found = results_.find({model, counts});
  if (found == results_.end()) {
    Snapshot first = models_[model].inputs->snapshot;
    std::erase_if(first.nodes, [&](const SnapshotNode& node) { return !actual.contains(node.name); });
    found = results_.emplace(std::make_pair(model, counts), run(model, first)).first;
    const SearchResult& result = found->second;
    if (file_.is_open())
      file_ << fmt::format("{} {} {}\n", model, fmt::join(counts, " "),
                           result.candidates.empty() ? "none" : pack_plan(result.candidates.front().plan))
            << std::flush;
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
