// Figure 1: see sections.h.
#include <fmt/format.h>

#include <algorithm>

#include "tests/bench/evaluation/charts.h"
#include "tests/bench/evaluation/sections.h"
#include "tests/bench/evaluation/uniform_plans.h"

namespace sailor::bench {
namespace {

struct Figure1Row {
  std::string name;
  std::string gpus, what;
  double iter_per_s = 0, usd_per_iter = 0;
};

std::string cluster_text(const Scenario& scenario) {
  std::string out;
  for (const PoolSize& pool : scenario.pools)
    out += fmt::format("{}{} {} @{}", out.empty() ? "" : " + ", pool.gpus, pool.gpu_type, pool.zone);
  return out;
}

// The GPUs of c3 with the plans of a user without a planner: c5 is the median.
std::optional<Figure1Row> bad_plan(const Study& study, Section& section, const Scenario& c3) {
  std::vector<UniformPlan> plans = uniform_plans(study.inputs(c3));
  const auto end =
      std::find_if(plans.begin(), plans.end(), [](const UniformPlan& one) { return !one.prediction.fits; });
  const auto fit = static_cast<size_t>(end - plans.begin());
  if (fit == 0) return std::nullopt;
  section.say(
      fmt::format("c5: {} uniform plans over all GPUs of c3 (stages of equal length, one TP degree, one "
                  "microbatch size, ranks in "
                  "the order of the nodes). {} do not fit the memory. Of the {} others the fastest makes "
                  "{:.4g} iterations/s, the "
                  "slowest {:.4g}; c5 is the median.",
                  plans.size(), plans.size() - fit, fit, plans[0].prediction.iterations_per_s(),
                  plans[fit - 1].prediction.iterations_per_s()));
  const UniformPlan& middle = plans[fit / 2];
  return Figure1Row{"c5", cluster_text(c3), "a bad plan: " + sailor::summary(middle.plan),
                    middle.prediction.iterations_per_s(), middle.prediction.usd_per_iteration()};
}

// "c3 = 1.15" for every "cN =" of the quantity, with the values in order.
void add_multiples(PublishedTable& table, const PublishedNumber& number,
                   const std::vector<Figure1Row>& rows) {
  const std::vector<double> values = number.values();
  size_t value = 0;
  for (size_t at = 0; (at = number.quantity.find(" = ", at)) != std::string::npos; at += 3) {
    const std::string name = at < 2 ? "" : number.quantity.substr(at - 2, 2);
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const Figure1Row& one) { return one.name == name; });
    if (row == rows.end() || value >= values.size()) continue;
    table.add("throughput of " + name + " over " + rows[0].name, values[value++], "x",
              {{name, row->iter_per_s / rows[0].iter_per_s}}, true);
  }
}

}  // namespace

Section figure_1(Study& study) {
  Section section{"figure-1", "Figure 1: the gain of more GPUs, by type and zone", {}};
  std::vector<Figure1Row> rows;
  for (const Scenario* scenario : study.scenarios("figure1-")) {
    const RowResult& ours = study.plan(*scenario);
    if (!ours.plan) continue;
    const std::string name = scenario->name.substr(std::string("figure1-").size());
    rows.push_back({name, cluster_text(*scenario), "planned: " + sailor::summary(*ours.plan),
                    *ours.iter_per_s, *ours.usd_per_iter});
    if (name == "c4")
      if (const Scenario* c3 = study.scenario("figure1-c3"))
        if (auto bad = bad_plan(study, section, *c3)) rows.push_back(std::move(*bad));
  }
  if (rows.empty()) {
    section.say(kNotAskedFor);
    return section;
  }
  ResultTable table{"figure-1-clusters", "Clusters of the figure, planned for throughput.", {}, {}};
  table.columns = {
      "",    "GPUs", "iterations/s", "over " + rows[0].name, "USD/iteration", "cost over " + rows[0].name,
      "plan"};
  BarChart chart;
  chart.title = "Throughput and cost over " + rows[0].name;
  chart.unit = "times " + rows[0].name;
  chart.line = 1;
  for (const Figure1Row& row : rows) {
    const double faster = row.iter_per_s / rows[0].iter_per_s,
                 dearer = row.usd_per_iter / rows[0].usd_per_iter;
    table.add({row.name, row.gpus, figure(row.iter_per_s), factor(faster), figure(row.usd_per_iter),
               factor(dearer), row.what});
    chart.add(row.name, "throughput", {faster});
    chart.add(row.name, "cost of an iteration", {dearer});
  }
  section.show(std::move(table));
  section.show("figure-1-over-c0", chart.svg());

  PublishedTable published("figure-1-published", "Values in the paper.");
  const auto row = [&](const char* name) {
    const auto it =
        std::find_if(rows.begin(), rows.end(), [&](const Figure1Row& one) { return one.name == name; });
    return it == rows.end() ? nullptr : &*it;
  };
  for (const PublishedNumber& number : study.published("figure 1")) add_multiples(published, number, rows);
  if (const Figure1Row* c3 = row("c3"), *c5 = row("c5"); c3 && c5)
    published.add("c5: much lower throughput than c3", "-",
                  fmt::format("{} of c3's", factor(c5->iter_per_s / c3->iter_per_s)),
                  c5->iter_per_s < c3->iter_per_s / 2 ? "confirmed"
                  : c5->iter_per_s < c3->iter_per_s   ? "lower, but by less than half"
                                                      : "not confirmed");
  if (const Figure1Row* c4 = row("c4"), *c6 = row("c6"); c4 && c6)
    published.add("c6: higher cost than c4", "-",
                  fmt::format("{} of c4's", factor(c6->usd_per_iter / c4->usd_per_iter)),
                  c6->usd_per_iter > c4->usd_per_iter ? "confirmed" : "not confirmed");
  section.show(published.table());
  study.count(published);
  return section;
}

}  // namespace sailor::bench
