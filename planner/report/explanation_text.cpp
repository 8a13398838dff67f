#include "planner/report/explanation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "planner/plan/feature_text.h"
#include "planner/plan/plan_json.h"
#include "planner/report/memory_table.h"
#include "planner/report/plan_drawing.h"
#include "planner/report/plan_text.h"
#include "planner/report/prediction_json.h"
#include "planner/simulator/change_memory.h"
#include "planner/simulator/tightest_stage.h"

namespace sailor {
namespace {

using nlohmann::json;

constexpr size_t kWidestList = 70;

bool is_one_zone(const Plan& plan) {
  std::set<std::string> zones;
  for (const PlanPipeline& pipeline : plan.pipelines)
    for (const PlanStage& stage : pipeline.stages) zones.insert(stage.zone);
  return zones.size() <= 1;
}

// One line if the plan restarts on change.
std::string restart_text(const PlanningContext& context, const Prediction& prediction) {
  const StagePrediction* stage = restarts_on_change(context.job, prediction, context.framework);
  if (stage == nullptr) return "";
  const MemoryUnit unit = memory_unit(prediction);
  return fmt::format(
      "restart on change: a change of plan needs {} {} on pipeline {}, stage {}, which has {}; {}\n",
      unit.text(change_bytes(stage->memory, stage->memory, context.framework)), unit.name, stage->pipeline,
      stage->stage, unit.text(stage->capacity_bytes), restart_source(context.job));
}

std::string in_words(const PlanningContext& context, const Candidate& chosen) {
  const Plan& plan = chosen.plan;
  const Prediction& p = chosen.prediction;
  const int64_t steps = context.job.training.steps;
  const size_t D = plan.pipelines.size();
  std::string out =
      fmt::format("{} on {}:\n{}{:.4g} s per iteration, {} tokens/s", plan.model,
                  gpus_by_type_and_zone(plan, is_one_zone(plan), kWidestList), estimate_mark(p),
                  p.iteration_s, rate_text(context.job.tokens_per_iteration() * p.iterations_per_s()));
  for (const Expense expense : context.job.expenses()) {
    const char* unit = kind_of(expense).unit;
    out += fmt::format(", {:.4g} {} per iteration", p.total(expense), unit);
    if (steps > 0)
      out +=
          fmt::format(", {:.4g} {} for {} steps", p.total(expense) * static_cast<double>(steps), unit, steps);
  }
  const std::set<int> sizes = microbatch_sizes(plan);
  int64_t microbatches = 0;
  for (const PlanPipeline& pipeline : plan.pipelines) microbatches += pipeline.microbatches;
  out += fmt::format("\n{} pipeline{} of {} stage{}, {} microbatches of {} sequence{} in all", D,
                     D == 1 ? "" : "s", num_stages_text(plan), num_stages_text(plan) == "1" ? "" : "s",
                     microbatches, fmt::join(sizes, " or "), sizes == std::set{1} ? "" : "s");
  if (plan.precision) out += fmt::format(", in {}", to_string(*plan.precision));
  if (const std::optional<LoraSpec>& lora = context.job.training.lora)
    out += fmt::format(", adapters of rank {} (LoRA)", lora->r);
  if (plan.interleave > 1)
    out += fmt::format(", {} chunks of the model per stage (interleaved)", plan.interleave);
  if (most_weight_delay(plan) != kWholeBackward)
    out += ", gradients of weights after those that other stages wait for (split backward)";
  if (const std::string what = offloaded_text(plan); !what.empty())
    out += fmt::format(", {} in the memory of nodes (offload)", what);
  if (shards_optimizer(plan.zero))
    out += fmt::format(
        ", {} sharded (ZeRO-{}{})", plan.zero == Zero::optimizer ? "optimizer states" : to_string(plan.zero),
        static_cast<int>(plan.zero),
        plan.zero_group > 0 ? fmt::format(", every {} pipelines have a copy", plan.zero_group) : "");
  if (plan.sequence_parallel) out += ", tokens split over TP groups (sequence parallelism)";
  if (const std::string stages = recomputing_stages(plan); stages == "all")
    out += ", activations recomputed";
  else if (!stages.empty())
    out += ", activations recomputed in " + (stages == "some" ? "some stages" : "stages " + stages);
  return out + "\n" + restart_text(context, p) + estimate_note(p);
}

std::string time_table(const Candidate& chosen, const IterationShares& s) {
  constexpr double kBar = 50;
  std::string out = fmt::format("WHERE THE TIME GOES (pipeline {}, stage {}, which the others wait for)\n",
                                s.pipeline, s.stage);
  const auto row = [&](const char* name, double seconds, const char* what) {
    const double part = chosen.prediction.iteration_s > 0 ? seconds / chosen.prediction.iteration_s : 0;
    const auto bar = static_cast<size_t>(std::clamp(part, 0.0, 1.0) * kBar + 0.5);
    out += fmt::format("  {:<9} {:>9.4g} s {:>5.1f}%  {}{}\n", name, seconds, 100 * part,
                       std::string(bar, '#'), fmt::format("{}{}", bar > 0 ? " " : "", what));
  };
  row("compute", s.compute_s, "");
  row("bubble", s.bubble_s, s.bubble_s > 0 ? "waiting for other stages" : "");
  row("p2p", s.p2p_s, s.p2p_s > 0 ? "messages between stages" : "");
  row("sync", s.sync_s, s.sync_s > 0 ? "gradient sync not overlapped" : "");
  row("update", s.update_s, "");
  row("overhead", s.overhead_s, "");
  std::string lines;  // without spaces at their ends
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    const std::string line = out.substr(at, end - at);
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    at = end + 1;
  }
  return lines;
}

std::string binding_list(const Explanation& explanation) {
  std::string out = "BOTTLENECKS\n";
  for (const Binding& binding : explanation.binding) out += "  " + binding.what + "\n";
  if (explanation.binding.empty()) out += "  none: no change below gains 0.5% or more\n";
  const Prediction& p = explanation.chosen.prediction;
  const TightestStage tightest = tightest_stage(p);
  const StagePrediction& stage = p.stages.at(tightest.index);
  return out + fmt::format("  fullest GPU: pipeline {}, stage {}, {:.0f}% of its memory\n", stage.pipeline,
                           stage.stage, 100 * tightest.part);
}

std::string gain_text(double gain) {
  return std::abs(gain) < 5e-4 ? "0.0%" : fmt::format("{:+.1f}%", 100 * gain);
}

std::string what_if_table(const PlanningContext& context, const Explanation& explanation) {
  constexpr size_t kChange = 33, kGpus = 24;
  const Objective objective = context.job.objective;
  const Expense shown = objective.expense().value_or(Expense::cost);
  std::string better = objective.better();
  std::transform(better.begin(), better.end(), better.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  const size_t gain_width = std::max<size_t>(8, better.size());
  std::string out =
      fmt::format("WHAT IF\n  {:<{}} {:>8} {:>8} {:>9} {:>{}}  {}\n", "", kChange, "ITER (s)", "TOKENS/s",
                  fmt::format("{}/ITER", kind_of(shown).column), better, gain_width, "PLAN");
  std::vector<std::string> not_asked, cut_short;
  size_t answered = 0;
  for (const WhatIf& what : explanation.what_ifs) {
    const std::string change = cut_to(what.change, kChange);
    if (what.best) {
      const Prediction& p = what.best->prediction;
      out += fmt::format("  {:<{}} {:>8.4g} {:>8} {:>9.4g} {:>{}}  {}\n", change, kChange, p.iteration_s,
                         rate_text(context.job.tokens_per_iteration() * p.iterations_per_s()), p.total(shown),
                         gain_text(what.gain), gain_width, cut_to(gpus_by_type(what.best->plan), kGpus));
      ++answered;
      if (!what.complete) cut_short.push_back(what.change);
    } else if (!what.why_not.empty()) {
      out += fmt::format("  {:<{}} {}\n", change, kChange, what.why_not);
    } else {
      not_asked.push_back(what.change);
    }
  }
  if (cut_short.size() > 1 && cut_short.size() == answered)
    out += "  all of these searches stopped early, better plans may exist\n";
  else if (!cut_short.empty())
    out += fmt::format("  stopped early, a better plan may exist: {}\n", fmt::join(cut_short, "; "));
  if (!not_asked.empty()) out += fmt::format("  skipped, no time left: {}\n", fmt::join(not_asked, "; "));
  return out;
}

const char* name_of(WhatIf::Kind kind) {
  switch (kind) {
    case WhatIf::Kind::planner:
      return "planner";
    case WhatIf::Kind::less:
      return "less";
    case WhatIf::Kind::zone:
      return "zone";
    case WhatIf::Kind::node:
      return "node";
    case WhatIf::Kind::budget:
      return "budget";
    case WhatIf::Kind::floor:
      return "throughput floor";
    case WhatIf::Kind::memory:
      return "memory";
  }
  return "";
}

json plan_and_prediction(const Candidate& candidate) {
  return {{"plan", json::parse(to_json(candidate.plan, -1))},
          {"prediction", prediction_json(candidate.prediction)}};
}

json what_if_json(const WhatIf& what) {
  json out = {{"kind", name_of(what.kind)},
              {"change", what.change},
              {"gpu_type", what.gpu_type},
              {"asked", what.best.has_value() || !what.why_not.empty()},
              {"complete", what.complete},
              {"why_not", what.why_not},
              {"gain", what.best ? json(what.gain) : json(nullptr)},
              {"plan", nullptr},
              {"prediction", nullptr}};
  if (what.best) out.update(plan_and_prediction(*what.best));
  return out;
}

}  // namespace

std::string explanation_text(const PlanningContext& context, const Explanation& explanation) {
  return in_words(context, explanation.chosen) + "\n" +
         plan_drawing(explanation.chosen.plan, explanation.chosen.prediction) + "\n" +
         time_table(explanation.chosen, explanation.shares) + "\n" + binding_list(explanation) + "\n" +
         what_if_table(context, explanation);
}

std::string explanation_json(const PlanningContext& context, const SearchResult& result,
                             const Explanation* explanation, const std::vector<StartOption>& starts) {
  json out = {{"sailor_explanation", 1},
              {"status", status_name(result.status)},
              {"model", context.job.model.name},
              {"objective", to_string(context.job.objective)},
              {"bound_iteration_s", optional_json(result.bound_iteration_s)},
              {"rejected", result.rejected},
              {"reason", result.reason},
              {"chosen", nullptr},
              {"binding", json::array()},
              {"what_if", json::array()},
              {"starts", json::array()}};
  for (const StartOption& option : starts)
    out["starts"].push_back({{"gpus", gpus_by_type(option.candidate.plan)},
                             {"start_in_s", option.start.wait_s},
                             {"end_in_s", option.end_s()},
                             {"nodes", node_names(option.candidate.plan)},
                             {"queued", json::parse(to_json(option.queued))}});
  add_bounds(result.bound, out);
  if (explanation == nullptr) return out.dump(2) + "\n";
  const Candidate& chosen = explanation->chosen;
  const TightestStage tightest = tightest_stage(chosen.prediction);
  const StagePrediction& stage = chosen.prediction.stages.at(tightest.index);
  out["chosen"] = plan_and_prediction(chosen);
  out["chosen"]["given"] = explanation->given;
  if (context.job.changes_in_place())
    out["chosen"]["restart_on_change"] =
        restarts_on_change(context.job, chosen.prediction, context.framework) != nullptr;
  out["chosen"]["tokens_per_s"] = context.job.tokens_per_iteration() * chosen.prediction.iterations_per_s();
  out["chosen"]["shares"] = shares_json(explanation->shares);
  out["chosen"]["bottleneck"] = explanation->shares.bottleneck();
  out["chosen"]["tightest"] = {{"pipeline", stage.pipeline}, {"stage", stage.stage}, {"part", tightest.part}};
  for (const Binding& binding : explanation->binding)
    out["binding"].push_back({{"what", binding.what}, {"gain", binding.gain}});
  for (const WhatIf& what : explanation->what_ifs) out["what_if"].push_back(what_if_json(what));
  return out.dump(2) + "\n";
}

}  // namespace sailor
