#include "planner/report/candidate_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "planner/plan/feature_text.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/plan_nodes.h"
#include "planner/plan/rank_layout.h"
#include "planner/report/plan_text.h"
#include "planner/report/prediction_json.h"
#include "planner/search/problem/goal.h"
#include "planner/simulator/assumed_links.h"
#include "planner/simulator/change_memory.h"
#include "planner/simulator/cost.h"
#include "planner/simulator/iteration_shares.h"
#include "planner/simulator/tightest_stage.h"

namespace sailor {
namespace {

using nlohmann::json;

// Of a row; the first column gets what the others leave.
constexpr size_t kWidest = 120, kLeastGpus = 12, kWidestTp = 18, kWidestFeatures = 26;
constexpr char kRestartOnChange[] = "restart on change";
constexpr double kTellShare = 0.01;  // of an iteration
constexpr ptrdiff_t kShownNodes = 4;

// Does the plan cross no zones because there is only one?
bool is_one_zone(const Snapshot& snapshot) {
  return std::all_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                     [&](const SnapshotNode& node) { return node.zone == snapshot.nodes.front().zone; });
}

bool restarts_on_change(const PlanningContext& context, const SearchResult& result,
                        const Candidate& candidate) {
  return result.cost_model == CostModel::native &&
         restarts_on_change(context.job, candidate.prediction, context.framework) != nullptr;
}

// Features of the plan, and what an elastic job has to expect of it.
std::string with_text(const PlanningContext& context, const SearchResult& result,
                      const Candidate& candidate) {
  std::string text = cut_to(feature_text(candidate.plan), kWidestFeatures);
  if (restarts_on_change(context, result, candidate))
    text += (text.empty() ? "" : ", ") + std::string(kRestartOnChange);
  return text;
}

// One row, in the order of the columns, but for the first one.
std::vector<std::string> row_of(const PlanningContext& context, const SearchResult& result,
                                const Candidate& candidate, const std::optional<PlannedStart>& start) {
  const Plan& plan = candidate.plan;
  const Prediction& p = candidate.prediction;
  const IterationShares shares = iteration_shares(context.framework, plan, p, result.cost_model);
  const int64_t steps = context.job.training.steps;
  std::vector<std::string> row = {num_stages_text(plan),
                                  fmt::format("{}", plan.pipelines.size()),
                                  cut_to(tp_text(plan), kWidestTp),
                                  with_text(context, result, candidate),
                                  microbatch_text(plan),
                                  estimate_mark(p) + fmt::format("{:.4g}", p.iteration_s),
                                  rate_text(context.job.tokens_per_iteration() * p.iterations_per_s())};
  if (start) {
    row.push_back(start_text(*start, context.snapshot.time_s));
    const double run_s = static_cast<double>(steps) * p.iteration_s;
    row.push_back(steps > 0 ? time_text(start->wait_s + run_s, context.snapshot.time_s) : "-");
  }
  for (const Expense expense : context.job.expenses()) {
    const double spent = p.total(expense);
    row.push_back(fmt::format("{:.4g}", spent));
    row.push_back(steps > 0 ? fmt::format("{:.4g}", spent * static_cast<double>(steps)) : "-");
  }
  row.push_back(fmt::format("{:.0f}%", 100 * tightest_stage(p).part));
  row.push_back(fmt::format("{} {:.0f}%", shares.bottleneck(), 100 * shares.bottleneck_part()));
  return row;
}

std::string gap_text(double value, std::optional<double> bound) {
  return bound && *bound > 0 ? fmt::format(" (gap {:.1f}%)", 100 * std::max(0.0, value / *bound - 1)) : "";
}

// What the assumption about links is worth for the best plan.
std::string assumed_links_text(const PlanningContext& context, const SearchResult& result) {
  const Candidate& best = result.candidates.front();
  const double share = assumed_links_share(context, best.plan, best.prediction, result.cost_model);
  if (share < kTellShare) return "";
  return fmt::format("{:.0f} % of the best plan's time depends on links that were not measured\n",
                     100 * share);
}

// "on demand", "spot", ...
std::string prices_text(const PlanBill& bill) {
  std::vector<const char*> prices;
  if (bill.on_demand) prices.push_back("on demand");
  if (bill.spot) prices.push_back("spot");
  if (bill.by_units) prices.push_back("billing units");
  return fmt::format("{}", fmt::join(prices, " and "));
}

// What the best plan's cost is that of. The published model pays GPUs, on demand.
std::string bill_text(const PlanningContext& context, const SearchResult& result) {
  if (result.cost_model != CostModel::native) return "";
  const PlanBill bill = bill_of(context, result.candidates.front().plan);
  const auto plural = [](int count) { return count == 1 ? "" : "s"; };
  std::string out = fmt::format("the best plan pays {} GPU{}", bill.paid_gpus, plural(bill.paid_gpus));
  if (bill.paid_gpus != bill.used_gpus)
    out += fmt::format(" of {} whole node{}, uses {}", bill.whole_nodes, plural(bill.whole_nodes),
                       bill.used_gpus);
  return out + fmt::format(": {:.4g} USD per hour ({})\n", 3600 * bill.usd_per_s, prices_text(bill));
}

// Of an elastic job whose best plan has state that would be lost with a node. A job on a single node is lost
// with it anyway.
std::string only_holders_text(const PlanningContext& context, const Plan& plan) {
  if (!context.job.changes_in_place()) return "";
  const std::set<std::string> nodes = only_holders(plan);
  if (nodes.empty() || RankLayout(plan).nodes().size() < 2) return "";
  const ptrdiff_t shown = std::min(kShownNodes, std::ssize(nodes));
  const std::string more =
      std::ssize(nodes) > shown ? fmt::format(" and {} more", std::ssize(nodes) - shown) : "";
  return fmt::format("state without a second holder: on {}{}; after the loss of {} {}\n",
                     fmt::join(nodes.begin(), std::next(nodes.begin(), shown), ", "), more,
                     nodes.size() == 1 ? "it" : "one of them", loss_source(context.job));
}

json bill_json(const PlanBill& bill) {
  return {{"gpus", bill.paid_gpus},
          {"whole_nodes", bill.whole_nodes},
          {"usd_per_hour", 3600 * bill.usd_per_s},
          {"prices", prices_text(bill)}};
}

}  // namespace

std::string candidate_footer(const PlanningContext& context, const SearchResult& result) {
  std::string out =
      fmt::format("objective {} | {} configurations, {} plans predicted in {:.2f} s, search {}\n",
                  to_string(context.job.objective), result.stats.configurations, result.stats.plans_scored,
                  result.stats.search_s, result.stats.complete ? "complete" : "stopped early");
  if (result.bound_iteration_s && !result.candidates.empty()) {
    const Prediction& best = result.candidates.front().prediction;
    const Goal goal = goal_of(context.job);
    const Expense expense = goal.followed();
    const bool fast = !goal.objective.expense();
    out += fmt::format(
        "no plan in the search space is faster than {:.4g} s{} or {} than {:.4g} {} per iteration{}\n",
        *result.bound_iteration_s, fast ? gap_text(best.iteration_s, result.bound_iteration_s) : "",
        kind_of(expense).less, result.bound[expense].value_or(0), kind_of(expense).unit,
        fast ? "" : gap_text(best.total(expense), result.bound[expense]));
  }
  if (result.rejected.empty()) return out;
  out += "rejected:";
  const char* separator = " ";
  for (const auto& [reason, count] : result.rejected) {
    out += fmt::format("{}{} x {}", separator, count, reason);
    separator = ", ";
  }
  return out + "\n";
}

std::string candidate_table(const PlanningContext& context, const SearchResult& result,
                            const std::optional<PlannedStart>& start) {
  using Row = std::vector<std::string>;
  constexpr size_t kTp = 2, kFeatures = 3;  // text, like the last column; numbers are right-aligned
  std::vector<Row> rows = {{"P", "D", "TP", "", "MB", "ITER (s)", "TOKENS/s"}};
  if (start) rows[0].insert(rows[0].end(), {"START", "END"});
  for (const Expense expense : context.job.expenses())
    for (const char* per : {"ITER", "RUN"})
      rows[0].push_back(fmt::format("{}/{}", kind_of(expense).column, per));
  rows[0].insert(rows[0].end(), {"PEAK", "BOUND BY"});
  double uncertainty = 0;
  for (const Candidate& candidate : result.candidates) {
    uncertainty = std::max(uncertainty, candidate.prediction.uncertainty);
    rows.push_back(row_of(context, result, candidate, start));
  }
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  if (widths[kFeatures] > 0) {
    rows[0][kFeatures] = "WITH";
    widths[kFeatures] = std::max(widths[kFeatures], rows[0][kFeatures].size());
  }
  const size_t others = std::accumulate(widths.begin(), widths.end(), widths.size());
  const size_t most_gpus = std::max(kLeastGpus, kWidest - 2 - std::min(kWidest - 2, others));
  const bool one_zone = is_one_zone(context.snapshot);
  Row gpus = {"GPUS"};
  for (const Candidate& candidate : result.candidates)
    gpus.push_back(gpus_by_type_and_zone(candidate.plan, one_zone, most_gpus));
  size_t gpus_width = 0;
  for (const std::string& text : gpus) gpus_width = std::max(gpus_width, text.size());

  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line = fmt::format("{} {:<{}}", r == 1 ? "*" : " ", gpus[r], gpus_width);
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) continue;  // nothing in the column
      const bool words = i == kTp || i == kFeatures || i + 1 == widths.size();
      line += words ? fmt::format(" {:<{}}", rows[r][i], widths[i])
                    : fmt::format(" {:>{}}", rows[r][i], widths[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  out += estimate_note(uncertainty);
  if (!result.candidates.empty())
    out += bill_text(context, result) + assumed_links_text(context, result) +
           only_holders_text(context, result.candidates.front().plan);
  if (std::any_of(result.candidates.begin(), result.candidates.end(),
                  [&](const Candidate& candidate) { return restarts_on_change(context, result, candidate); }))
    out += fmt::format("{}: memory does not hold the states of two plans; {}\n", kRestartOnChange,
                       restart_source(context.job));
  if (result.candidates.empty()) out += fmt::format("no plan: {}\n", result.reason);
  return out + candidate_footer(context, result);
}

std::string result_json(const PlanningContext& context, const SearchResult& result) {
  json candidates = json::array();
  const double tokens = context.job.tokens_per_iteration();
  const auto steps = static_cast<double>(context.job.training.steps);
  for (const Candidate& candidate : result.candidates) {
    const Prediction& p = candidate.prediction;
    const IterationShares shares = iteration_shares(context.framework, candidate.plan, p, result.cost_model);
    candidates.push_back({{"plan", json::parse(to_json(candidate.plan, -1))},
                          {"prediction", prediction_json(p)},
                          {"tokens_per_s", tokens * p.iterations_per_s()},
                          {"bottleneck", shares.bottleneck()},
                          {"shares", shares_json(shares)}});
    if (context.job.changes_in_place()) {
      candidates.back()["restart_on_change"] = restarts_on_change(context, result, candidate);
      candidates.back()["only_holders"] = only_holders(candidate.plan);
    }
    if (result.cost_model == CostModel::native)
      candidates.back()["bill"] = bill_json(bill_of(context, candidate.plan));
    for (const Expense expense : context.job.expenses())
      candidates.back()[kind_of(expense).per_run_key] =
          steps > 0 ? json(steps * p.total(expense)) : json(nullptr);
  }
  json out = {{"sailor_plan_result", 1},
              {"status", status_name(result.status)},
              {"model", context.job.model.name},
              {"objective", to_string(context.job.objective)},
              {"bound_iteration_s", optional_json(result.bound_iteration_s)},
              {"complete", result.stats.complete},
              {"configurations", result.stats.configurations},
              {"plans_scored", result.stats.plans_scored},
              {"rejected", result.rejected},
              {"reason", result.reason},
              {"candidates", std::move(candidates)}};
  add_bounds(result.bound, out);
  return out.dump(2) + "\n";
}

}  // namespace sailor
