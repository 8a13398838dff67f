// The paper's two key takeaways as statements that the runs support or not: see sections.h.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tests/bench/evaluation/charts.h"
#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

// A mix of two types beside the first of them alone.
struct Mix {
  std::string model;
  int fast_gpus = 0, slow_gpus = 0;
  double parameters = 0;  // of the model
  double gain = 0;        // throughput of the mix over that of the first type alone
  double cost = 0;        // likewise, of an iteration
  size_t types_used = 0;
  std::string used;
};

double parameters_of(const Inputs& inputs) {
  double sum = 0;
  for (const LayerSizes& layer : inputs.profiles.sizes.by_tp.begin()->second)
    sum += static_cast<double>(layer.parameters);
  return sum;
}

// Scenarios with these prefixes that have a partner on their first pool alone.
std::vector<Mix> mixes(Study& study, const std::vector<std::string>& prefixes) {
  std::vector<Mix> out;
  for (const std::string& prefix : prefixes)
    for (const Scenario* mixed : study.scenarios(prefix)) {
      if (mixed->pools.size() != 2) continue;
      const std::vector<const Scenario*> candidates = study.scenarios("homo-");
      const auto alone = std::find_if(candidates.begin(), candidates.end(), [&](const Scenario* one) {
        const PoolSize &pool = one->pools[0], &first = mixed->pools[0];
        return one->model == mixed->model && pool.gpus == first.gpus && pool.gpu_type == first.gpu_type;
      });
      if (alone == candidates.end()) continue;
      const RowResult &ours = study.plan(*mixed), &base = study.plan(**alone);
      if (!ours.plan || !base.plan) continue;
      std::set<std::string> types;
      for (const PlanPipeline& pipeline : ours.plan->pipelines)
        for (const PlanStage& stage : pipeline.stages) types.insert(stage.gpu_type);
      out.push_back({mixed->model, mixed->pools[0].gpus, mixed->pools[1].gpus,
                     parameters_of(study.inputs(*mixed)), *ours.iter_per_s / *base.iter_per_s,
                     *ours.usd_per_iter / *base.usd_per_iter, types.size(), gpus_used(*ours.plan)});
    }
  return out;
}

// Statements with how many of the comparisons support each.
class Statements {
 public:
  explicit Statements(std::string name)
      : table_{std::move(name),
               "Statements, and what the runs above say of each.",
               {"statement", "compared", "supported"},
               {}} {}

  void add(const std::string& statement, const std::string& compared, int supporting, int all) {
    if (all == 0) {
      table_.add({statement, "-", {"not compared: the scenarios were not asked for", Mark::aside}});
      return;
    }
    const std::string verdict = supporting == all ? "yes" : supporting == 0 ? "no" : "in part";
    table_.add({statement,
                compared,
                {fmt::format("{} ({} of {})", verdict, supporting, all), supporting == all ? Mark::good
                                                                         : supporting == 0 ? Mark::bad
                                                                                           : Mark::plain}});
  }
  const ResultTable& table() const { return table_; }

 private:
  ResultTable table_;
};

std::string mix_name(const Mix& mix) {
  return fmt::format("{} {}+{}", mix.model, mix.fast_gpus, mix.slow_gpus);
}

// Compares neighbours of the list; `supports` says whether a pair is as the statement has it.
template <typename Supports>
void add_pairs(Statements& statements, const std::string& statement,
               const std::vector<std::pair<Mix, Mix>>& pairs, Supports supports) {
  std::string text;
  int supporting = 0;
  for (const auto& [a, b] : pairs) {
    text += fmt::format("{}{} {} against {} {}", text.empty() ? "" : "; ", mix_name(a), factor(a.gain),
                        mix_name(b), factor(b.gain));
    supporting += supports(a, b);
  }
  statements.add(statement, text, supporting, static_cast<int>(pairs.size()));
}

std::vector<std::pair<Mix, Mix>> pairs_where(const std::vector<Mix>& mixes,
                                             const std::function<bool(const Mix&, const Mix&)>& belong) {
  std::vector<std::pair<Mix, Mix>> out;
  for (const Mix& a : mixes)
    for (const Mix& b : mixes)
      if (belong(a, b)) out.emplace_back(a, b);
  return out;
}

void add_takeaway_1(Study& study, Section& section, const std::string& text) {
  const std::vector<Mix> equal = mixes(study, {"het50-"}), ratios = mixes(study, {"ratio-"});
  ResultTable table{
      "takeaway-1-gains",
      "Two types in one zone against the first type alone: throughput, cost, and what the plan uses.",
      {"model", "first type", "second type", "throughput", "cost of an iteration",
       "gain per 8 of the second type", "GPUs used"},
      {}};
  const auto per_8 = [](const Mix& mix) { return 8 * (mix.gain - 1) / mix.slow_gpus; };
  for (const std::vector<Mix>& some : {equal, ratios})
    for (const Mix& mix : some)
      table.add({mix.model,
                 fmt::format("{}", mix.fast_gpus),
                 fmt::format("{}", mix.slow_gpus),
                 {factor(mix.gain), mix.gain < 1 - kTolerance ? Mark::bad : Mark::plain},
                 factor(mix.cost),
                 fmt::format("{:.1f} %", 100 * per_8(mix)),
                 mix.used});
  section.say("Takeaway 1, as the data pack has it: " + text + ".");
  section.show(std::move(table));

  BarChart gains;
  gains.title = "Throughput of a mix over its first type alone";
  gains.unit = "times the first type alone";
  gains.line = 1;
  for (const Mix& mix : ratios) {
    const std::string group = fmt::format("{}+{}", mix.fast_gpus, mix.slow_gpus);
    if (std::find(gains.groups.begin(), gains.groups.end(), group) == gains.groups.end())
      gains.groups.push_back(group);
  }
  for (const Mix& mix : ratios) {
    auto series = std::find_if(gains.series.begin(), gains.series.end(),
                               [&](const BarSeries& one) { return one.name == mix.model; });
    if (series == gains.series.end())
      series = gains.series.insert(series, {mix.model, std::vector<std::optional<Bar>>(gains.groups.size())});
    const std::string group = fmt::format("{}+{}", mix.fast_gpus, mix.slow_gpus);
    series->bars[static_cast<size_t>(std::find(gains.groups.begin(), gains.groups.end(), group) -
                                     gains.groups.begin())] = Bar{mix.gain};
  }
  if (!ratios.empty()) section.show("gain-of-mixing", gains.svg());

  Statements statements("takeaway-1");
  const auto larger = [](const Mix& a, const Mix& b) { return a.gain > b.gain; };
  add_pairs(statements, "Mixing types helps more when GPUs are few (1:1)",
            pairs_where(equal, [](const Mix& a,
                                  const Mix& b) { return a.model == b.model && a.fast_gpus < b.fast_gpus; }),
            larger);
  add_pairs(statements, "Mixing types helps more when the model is large (1:1)",
            pairs_where(equal,
                        [](const Mix& a, const Mix& b) {
                          return a.fast_gpus == b.fast_gpus && a.parameters > b.parameters;
                        }),
            larger);
  // Were the ratio of no matter, every further GPU would bring as much as the one before.
  std::string text_of_ratio;
  int uneven = 0, models = 0;
  for (size_t from = 0; from < ratios.size();) {
    size_t to = from;
    while (to < ratios.size() && ratios[to].model == ratios[from].model) ++to;
    const auto begin = ratios.begin() + static_cast<std::ptrdiff_t>(from),
               end = ratios.begin() + static_cast<std::ptrdiff_t>(to);
    const auto [least, most] =
        std::minmax_element(begin, end, [&](const Mix& a, const Mix& b) { return per_8(a) < per_8(b); });
    text_of_ratio += fmt::format("{}{}: 8 more bring {:.1f} % at {}:{}, {:.1f} % at {}:{}",
                                 models ? "; " : "", most->model, 100 * per_8(*most), most->fast_gpus,
                                 most->slow_gpus, 100 * per_8(*least), least->fast_gpus, least->slow_gpus);
    uneven += per_8(*most) > 1.5 * per_8(*least);
    ++models;
    from = to;
  }
  statements.add(
      "The ratio matters: GPUs of the second type bring half as much again at the best ratio as at the worst",
      text_of_ratio, uneven, models);
  const auto most_gpus = std::max_element(equal.begin(), equal.end(), [](const Mix& a, const Mix& b) {
    return std::pair(a.fast_gpus, -a.parameters) < std::pair(b.fast_gpus, -b.parameters);
  });
  if (most_gpus != equal.end())
    statements.add("With the most GPUs and the smaller model the plan uses the first type only",
                   fmt::format("{}: {}, {} the first type alone", mix_name(*most_gpus), most_gpus->used,
                               factor(most_gpus->gain)),
                   most_gpus->types_used == 1, 1);
  section.show(statements.table());
}

void add_takeaway_2(Study& study, Section& section, const PublishedNumber& number,
                    PublishedTable& published) {
  section.say("Takeaway 2, as the data pack has it: " +
              fmt::format("{}: {}{}, {}.", number.quantity, number.value, number.unit, number.note));
  ResultTable table{"takeaway-2-pairs",
                    "One type over several zones against two types in one zone.",
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
    std::string text;
    int faster = 0;
    for (const PublishedTable::Ours& one : *pairs) {
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", one.scenario, factor(one.value));
      faster += one.value > 1;
    }
    statements.add(what, text, faster, static_cast<int>(pairs->size()));
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
  PublishedTable published("takeaways-published", "What the paper prints.");
  for (const PublishedNumber& number : study.published("takeaway 1"))
    add_takeaway_1(study, section, number.quantity + "; " + number.note);
  for (const PublishedNumber& number : study.published("takeaway 2"))
    add_takeaway_2(study, section, number, published);
  section.show(published.table());
  study.count(published);
  return section;
}

}  // namespace sailor::bench
