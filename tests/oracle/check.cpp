#include "tests/oracle/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "planner/plan/validate.h"
#include "tests/oracle/product.h"
#include "tests/oracle/score.h"

namespace sailor::oracle {
namespace {

constexpr double kTolerance = 1e-9;
constexpr int kBudgets = 20, kFloors = 5;

bool equal(double a, double b) {
  return std::abs(a - b) <= kTolerance * std::abs(b);
}

void fail(Row& row, const std::string& kind, const std::string& detail) {
  row.failures.push_back(kind);
  row.detail += (row.detail.empty() ? "" : "; ") + kind + (detail.empty() ? "" : ": ") + detail;
}

// A limit that a plan of the front meets only just, or misses only just, would be decided by rounding.
double apart_from(double limit, const ParetoFront& front, double (*value)(const FrontPoint&)) {
  const auto close = [&](const FrontPoint& point) { return std::abs(limit - value(point)) <= 1e-8 * limit; };
  while (std::any_of(front.points().begin(), front.points().end(), close)) limit *= 1 + 1e-7;
  return limit;
}

std::vector<Row> rows_of(const ParetoFront& front) {
  std::vector<Row> rows(2);
  rows[1].objective = Expense::cost;
  if (front.empty()) return rows;
  const FrontPoint &cheapest = front.cheapest(), &fastest = front.fastest();
  const auto budget = [&](double usd) {
    Row row;
    row.max_usd = apart_from(usd, front, [](const FrontPoint& point) { return point.usd; });
    rows.push_back(row);
  };
  budget(0.99 * cheapest.usd);
  const bool one = front.points().size() == 1;  // then all limits between the two are the same
  for (int k = 0; k < (one ? 1 : kBudgets); ++k)
    budget(cheapest.usd + (fastest.usd - cheapest.usd) * k / (kBudgets - 1));
  const auto floor = [&](double iterations_per_s) {
    Row row;
    row.objective = Expense::cost;
    row.min_iterations_per_s = 1 / apart_from(1 / iterations_per_s, front,
                                              [](const FrontPoint& point) { return point.iteration_s; });
    rows.push_back(row);
  };
  const double slow = 1 / cheapest.iteration_s, fast = 1 / fastest.iteration_s;
  for (int k = 0; k < (one ? 1 : kFloors); ++k) floor(slow + (fast - slow) * k / (kFloors - 1));
  floor(1.01 * fast);
  return rows;
}

// The plan must be what it says it is.
void judge_plan(const Problem& problem, const PlannerInputs& inputs, const Candidate& candidate, Row& row) {
  std::vector<std::string> wrong = check_plan(candidate.plan, inputs.job);
  for (const std::string& line : check_plan(candidate.plan, inputs.snapshot)) wrong.push_back(line);
  for (const PlanPipeline& pipeline : candidate.plan.pipelines)
    for (const PlanStage& stage : pipeline.stages)
      if (stage.node.empty()) wrong.push_back("a stage has no node");
  if (!wrong.empty()) fail(row, "invalid plan", wrong.front());
  const std::optional<GridPlan> grid = grid_plan(problem, candidate.plan);
  if (!grid) {
    fail(row, "invalid plan", "not of the paper's search space");
    return;
  }
  const std::string why = violation(problem, *grid);
  if (!why.empty()) {
    fail(row, "invalid plan", why);
    return;
  }
  const Score own = score(problem, *grid);
  row.ours = row.objective == Objective::throughput ? own.iteration_s : own.usd;
  if (!equal(candidate.prediction.iteration_s, own.iteration_s) ||
      !equal(candidate.prediction.usd_per_iteration(), own.usd))
    fail(row, "wrong prediction",
         fmt::format("{} s, {} USD where {} s, {} USD are right", candidate.prediction.iteration_s,
                     candidate.prediction.usd_per_iteration(), own.iteration_s, own.usd));
  if ((row.max_usd && own.usd > *row.max_usd * (1 + kTolerance)) ||
      (row.min_iterations_per_s && own.iteration_s > (1 + kTolerance) / *row.min_iterations_per_s))
    fail(row, "limit not met", "");
}

// The planner's own judge must agree that the optimum is a valid plan, and on its value; otherwise one of
// both is wrong.
void judge_optimum(const Problem& problem, const PlannerInputs& inputs, const FrontPoint& best, Row& row) {
  const Plan plan = planner_plan(problem, best.plan);
  std::vector<std::string> wrong = check_plan(plan, inputs.job);
  for (const std::string& line : check_plan(plan, inputs.snapshot)) wrong.push_back(line);
  const Prediction p = simulate(inputs.context(), plan, CostModel::published);
  if (!p.fits) wrong.push_back("memory");
  if (!equal(p.iteration_s, best.iteration_s) || !equal(p.usd_per_iteration(), best.usd))
    wrong.push_back(fmt::format("{} s, {} USD", p.iteration_s, p.usd_per_iteration()));
  if (!wrong.empty()) fail(row, "the planner does not accept the optimum", wrong.front());
}

void judge_value(const Problem& problem, Row& row) {
  row.equal = row.ours && row.optimum ? equal(*row.ours, *row.optimum) : !row.ours && !row.optimum;
  if (row.equal) return;
  if (!row.optimum) {
    fail(row, "found what is not there", "");
  } else if (!row.ours) {
    fail(row, "nothing found", traits(problem, *row.best));
  } else if (*row.ours < *row.optimum) {
    fail(row, "better than the optimum", "");
  } else {
    fail(row, "not optimal",
         fmt::format("{:.3g} % above, {}", 100 * (*row.ours / *row.optimum - 1), traits(problem, *row.best)));
  }
}

void judge_bounds(const ParetoFront& front, const SearchResult& result, Row& row) {
  row.bound = row.objective == Objective::throughput ? result.bound_iteration_s : result.bound[Expense::cost];
  if (!row.optimum) return;
  if (!row.bound)
    fail(row, "no bound", "");
  else if (!(*row.bound <= *row.optimum * (1 + kTolerance)))
    fail(row, "bound above the optimum", fmt::format("by {:.3g} %", 100 * (*row.bound / *row.optimum - 1)));
  // The other objective's bound holds for every plan that the limit allows; the limit never excludes the
  // cheapest (budgets) or the fastest (floors).
  const bool throughput = row.objective == Objective::throughput;
  const auto other = throughput ? result.bound[Expense::cost] : result.bound_iteration_s;
  const double least = throughput ? front.cheapest().usd : front.fastest().iteration_s;
  if (other && !(*other <= least * (1 + kTolerance)))
    fail(row, "other objective's bound above its optimum",
         fmt::format("by {:.3g} %", 100 * (*other / least - 1)));
}

}  // namespace

std::string Row::limit() const {
  if (max_usd) return fmt::format("max_usd={}", *max_usd);
  if (min_iterations_per_s) return fmt::format("min_iter_per_s={}", *min_iterations_per_s);
  return "none";
}

std::vector<Row> check_instance(const Problem& problem, const Enumeration& enumeration, double time_limit_s) {
  const ParetoFront& front = enumeration.front;
  PlannerInputs inputs = planner_inputs(problem);
  PlanOptions options;
  options.space = SearchSpace::paper;
  options.cost_model = CostModel::published;
  options.top_k = 1;
  options.time_limit_s = time_limit_s;
  options.explain = false;
  std::vector<Row> rows = rows_of(front);
  for (Row& row : rows) {
    const bool throughput = row.objective == Objective::throughput;
    if (!front.empty()) {
      const FrontPoint* best =
          throughput
              ? front.fastest_within(row.max_usd.value_or(HUGE_VAL))
              : front.cheapest_within(row.min_iterations_per_s ? 1 / *row.min_iterations_per_s : HUGE_VAL);
      if (best != nullptr) {
        row.optimum = throughput ? best->iteration_s : best->usd;
        row.best = best->plan;
        judge_optimum(problem, inputs, *best, row);
      }
    }
    inputs.job.objective = row.objective;
    inputs.job.constraints.most[Expense::cost] = row.max_usd;
    inputs.job.constraints.min_iterations_per_s = row.min_iterations_per_s;
    const SearchResult result = search(inputs.context(), options);
    if ((result.status == SearchStatus::found) != !result.candidates.empty())
      fail(row, "status and candidates disagree", "");
    if (!result.candidates.empty()) {
      row.found = result.candidates[0].plan;
      judge_plan(problem, inputs, result.candidates[0], row);
    } else if (result.status == SearchStatus::time_limit) {
      fail(row, "time limit", "");
    }
    judge_value(problem, row);
    judge_bounds(front, result, row);
  }
  return rows;
}

std::string traits(const Problem& problem, const GridPlan& plan) {
  std::vector<std::string> out;
  bool mixed_types = false, mixed_degrees = false, mixed_zones = false, unlike_stages = false;
  std::set<int> regions;
  for (int i = 0; i < plan.stages(); ++i)
    for (const auto& pipeline : plan.pipelines) {
      const Cell &cell = pipeline[i], &first = plan.pipelines[0][i];
      mixed_types = mixed_types || cell.type != first.type;
      mixed_degrees = mixed_degrees || cell.tp != first.tp;
      mixed_zones = mixed_zones || cell.zone != first.zone;
      unlike_stages = unlike_stages || cell != pipeline[0];
      regions.insert(problem.zones[cell.zone].region);
    }
  const int64_t total = num_microbatches(problem.global_batch, plan.microbatch), D = plan.replicas();
  if (mixed_types) out.push_back("types mixed in a stage");
  if (mixed_degrees) out.push_back("degrees mixed in a stage");
  if (mixed_zones) out.push_back("zones mixed in a stage");
  if (unlike_stages) out.push_back("unlike stages");
  if (regions.size() > 1) out.push_back("several regions");
  if (D > 1 && (total + D - 1) / D == (total + D - 2) / (D - 1))
    out.push_back("fewer replicas, as many rounds");
  return out.empty() ? "plain" : fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace sailor::oracle
