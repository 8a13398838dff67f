// The paper's two key takeaways as statements that the runs support or not: see sections.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tests/bench/evaluation/charts.h"
#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

// A mix of two types, compared with the first of them alone.
struct Mix {
  std::string model;
  int fast_gpus = 0, slow_gpus = 0;
  double parameters = 0;  // of the model
  double gain = 0;        // throughput of the mix over that of the first type alone
  double cost = 0;        // likewise, cost of an iteration
  size_t types_used = 0;
  std::string used;

  std::string gpus() const { return fmt::format("{}+{}", fast_gpus, slow_gpus); }
  std::string name() const { return model + " " + gpus(); }
  double gain_per_8() const { return 8 * (gain - 1) / slow_gpus; }  // GPUs of the second type
};

double parameters_of(const Inputs& inputs) {
  double sum = 0;
  for (const LayerSizes& layer : inputs.profiles.sizes.by_shape.begin()->second)
    sum += static_cast<double>(layer.parameters);
  return sum;
}

// Scenarios with this prefix and with a counterpart that has only the first pool.
std::vector<Mix> mixes(Study& study, const std::string& prefix) {
  std::vector<Mix> out;
  const std::vector<const Scenario*> of_one_type = study.scenarios("homo-");
  for (const Scenario* mixed : study.scenarios(prefix)) {
    if (mixed->pools.size() != 2) continue;
    const PoolSize& first = mixed->pools[0];
    const auto alone = std::find_if(of_one_type.begin(), of_one_type.end(), [&](const Scenario* one) {
      const PoolSize& pool = one->pools[0];
      return one->model == mixed->model && pool.gpus == first.gpus && pool.gpu_type == first.gpu_type;
    });
    if (alone == of_one_type.end()) continue;
    const RowResult &ours = study.plan(*mixed), &base = study.plan(**alone);
    if (!ours.plan || !base.plan) continue;
    std::set<std::string> types;
    for (const PlanPipeline& pipeline : ours.plan->pipelines)
      for (const PlanStage& stage : pipeline.stages) types.insert(stage.gpu_type);
    out.push_back({mixed->model, first.gpus, mixed->pools[1].gpus, parameters_of(study.inputs(*mixed)),
                   *ours.iter_per_s / *base.iter_per_s, *ours.usd_per_iter / *base.usd_per_iter, types.size(),
                   gpus_used(*ours.plan)});
  }
  return out;
}

// Smaller differences between two ratios of throughput are ignored.
constexpr double kClearly = 0.005;

// Statements with the number of comparisons that support each.
class Statements {
 public:
  explicit Statements(std::string name) {
    table_.name = std::move(name);
    table_.caption = fmt::format(
        "Statements, and how many comparisons of the runs above support each; a difference below {} supports "
        "nothing.",
        kClearly);
    table_.columns = {"statement", "compared", "supported"};
  }

  void add(const std::string& statement, const std::vector<std::string>& compared, int supporting) {
    const int all = static_cast<int>(compared.size());
    Cell verdict = {"not compared: scenarios not selected", Mark::aside};
    if (all > 0) {
      verdict = {"in part", Mark::plain};
      if (supporting == all) verdict = {"yes", Mark::good};
      if (supporting == 0) verdict = {"no", Mark::bad};
      verdict.text += fmt::format(" ({} of {})", supporting, all);
    }
    table_.add({statement, fmt::format("{}", fmt::join(compared, "; ")), verdict});
  }
  const ResultTable& table() const { return table_; }

 private:
  ResultTable table_;
};

// For all matching pairs: does mixing help more in the first than in the second?
template <typename Belong>
void add_pairs(Statements& statements, const std::string& statement, const std::vector<Mix>& mixes,
               Belong belong) {
  std::vector<std::string> compared;
  int supporting = 0;
  for (const Mix& a : mixes)
    for (const Mix& b : mixes) {
      if (!belong(a, b)) continue;
      compared.push_back(fmt::format("{} {} vs. {} {}", a.name(), factor(a.gain), b.name(), factor(b.gain)));
      supporting += a.gain > b.gain + kClearly;
    }
  statements.add(statement, compared, supporting);
}

// If the ratio did not matter, each additional GPU would gain as much as the previous one.
void add_ratio_statement(Statements& statements, const std::vector<Mix>& ratios) {
  std::map<std::string, std::vector<Mix>> by_model;
  for (const Mix& mix : ratios) by_model[mix.model].push_back(mix);
  std::vector<std::string> compared;
  int supporting = 0;
  for (const auto& [model, some] : by_model) {
    const auto [least, most] = std::minmax_element(
        some.begin(), some.end(), [](const Mix& a, const Mix& b) { return a.gain_per_8() < b.gain_per_8(); });
    compared.push_back(fmt::format("{}: 8 more bring {:.1f} % in {}, {:.1f} % in {}", model,
                                   100 * most->gain_per_8(), most->gpus(), 100 * least->gain_per_8(),
                                   least->gpus()));
    supporting += most->gain_per_8() > 1.5 * least->gain_per_8();
  }
  statements.add(
      "The ratio matters: GPUs of the second type bring half as much again at the best ratio as at the worst",
      compared, supporting);
}

void add_takeaway_1(Study& study, Section& section, const std::string& text) {
  section.say("Takeaway 1, as stated in the data pack: " + text + ".");
  const std::vector<Mix> equal = mixes(study, "het50-"), ratios = mixes(study, "ratio-");
  ResultTable table{
      "takeaway-1-gains",
      "Two types in one zone compared with the first type alone: throughput, cost, and what the plan uses.",
      {"model", "first + second type", "throughput", "cost of an iteration", "gain per 8 of the second type",
       "GPUs used"},
      {}};
  for (const std::vector<Mix>* some : {&equal, &ratios})
    for (const Mix& mix : *some)
      table.add({mix.model,
                 mix.gpus(),
                 {factor(mix.gain), mix.gain < 1 - kTolerance ? Mark::bad : Mark::plain},
                 factor(mix.cost),
                 fmt::format("{:.1f} %", 100 * mix.gain_per_8()),
                 mix.used});
  section.show(std::move(table));

  BarChart chart;
  chart.title = "Throughput of a mix over its first type alone";
  chart.unit = "times the first type alone";
  chart.line = 1;
  for (const Mix& mix : ratios) chart.add(mix.gpus(), mix.model, {mix.gain});
  if (!ratios.empty()) section.show("gain-of-mixing", chart.svg());

  Statements statements("takeaway-1");
  add_pairs(statements, "Mixing types helps more when GPUs are few (1:1)", equal,
            [](const Mix& a, const Mix& b) { return a.model == b.model && a.fast_gpus < b.fast_gpus; });
  add_pairs(
      statements, "Mixing types helps more when the model is large (1:1)", equal,
      [](const Mix& a, const Mix& b) { return a.fast_gpus == b.fast_gpus && a.parameters > b.parameters; });
  add_ratio_statement(statements, ratios);
  std::vector<std::string> compared;
  const auto most = std::max_element(equal.begin(), equal.end(), [](const Mix& a, const Mix& b) {
    return std::pair(a.fast_gpus, -a.parameters) < std::pair(b.fast_gpus, -b.parameters);
  });
  if (most != equal.end())
    compared.push_back(
        fmt::format("{}: {}, {} the first type alone", most->name(), most->used, factor(most->gain)));
  statements.add("With the most GPUs and the smaller model the plan uses the first type only", compared,
                 !compared.empty() && most->types_used == 1);
  section.show(statements.table());
}

void add_takeaway_2(Study& study, Section& section, const PublishedNumber& number,
                    PublishedTable& published) {
  section.say("Takeaway 2, as stated in the data pack: " +
              fmt::format("{}: {}{}, {}.", number.quantity, number.value, number.unit, number.note));
  ResultTable table{"takeaway-2-pairs",
                    "One type over several zones compared with two types in one zone.",
                    {"zones", "GPUs", "mixed", "GPUs ", "throughput, zones over mixed",
                     "cost, zones over mixed", "same number of GPUs"},
                    {}};
  std::vector<PublishedTable::Ours> all, as_many;
  for (const char* prefix : {"geo-", "fourzones-"})
    for (const Scenario* zoned : study.scenarios(prefix))
      for (const Scenario* mixed : study.scenarios("het25-")) {
        if (mixed->model != zoned->model || mixed->pools[0].gpus != zoned->pools[0].gpus) continue;
        const RowResult &a = study.plan(*zoned), &b = study.plan(*mixed);
        if (!a.plan || !b.plan) continue;
        const double ratio = *a.iter_per_s / *b.iter_per_s;
        const bool equal = num_gpus(*zoned) == num_gpus(*mixed);
        table.add({zoned->name,
                   fmt::format("{}", num_gpus(*zoned)),
                   mixed->name,
                   fmt::format("{}", num_gpus(*mixed)),
                   {factor(ratio), ratio < 1 ? Mark::bad : Mark::good},
                   factor(*a.usd_per_iter / *b.usd_per_iter),
                   equal ? "yes" : "no"});
        all.push_back({zoned->name, ratio});
        if (equal) as_many.push_back({zoned->name, ratio});
      }
  section.show(std::move(table));
  Statements statements("takeaway-2");
  for (const auto& [what, pairs] :
       {std::pair("One type over several zones is faster than two types in one zone", &all),
        std::pair("... also with as many GPUs", &as_many)}) {
    std::vector<std::string> compared;
    int faster = 0;
    for (const PublishedTable::Ours& one : *pairs) {
      compared.push_back(one.scenario + " " + factor(one.value));
      faster += one.value > 1 + kClearly;
    }
    statements.add(what, compared, faster);
  }
  section.show(statements.table());
  const auto most = std::max_element(all.begin(), all.end(),
                                     [](const auto& a, const auto& b) { return a.value < b.value; });
  if (!number.values().empty())
    published.add(number.quantity + " (" + number.note + ")", number.values()[0], number.unit,
                  most == all.end() ? std::vector<PublishedTable::Ours>{} : std::vector{*most}, true);
}

}  // namespace

Section takeaways(Study& study) {
  Section section{"takeaways", "The two key takeaways", {}};
  PublishedTable published("takeaways-published", "Values in the paper.");
  for (const PublishedNumber& number : study.published("takeaway 1"))
    add_takeaway_1(study, section, number.quantity + "; " + number.note);
  for (const PublishedNumber& number : study.published("takeaway 2"))
    add_takeaway_2(study, section, number, published);
  section.show(published.table());
  study.count(published);
  return section;
}

}  // namespace sailor::bench
