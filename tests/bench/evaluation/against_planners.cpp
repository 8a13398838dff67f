// Figures 7 to 12 and the scenarios with limits: see sections.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tests/bench/evaluation/comparison.h"
#include "tests/bench/evaluation/sections.h"

namespace sailor::bench {
namespace {

using Scenarios = std::vector<const Scenario*>;

Scenarios with_prefixes(const Study& study, const std::vector<std::string>& prefixes) {
  Scenarios out;
  for (const std::string& prefix : prefixes) {
    const Scenarios some = study.scenarios(prefix);
    out.insert(out.end(), some.begin(), some.end());
  }
  return out;
}

// The scenarios of the models in the text; all if it names none.
Scenarios of_models(const Scenarios& scenarios, const std::string& text) {
  Scenarios out;
  for (const Scenario* scenario : scenarios)
    if (mentions(text, scenario->model)) out.push_back(scenario);
  return out.empty() ? scenarios : out;
}

// A value per planner in the quantity, in order.
void add_by_planner(Study& study, PublishedTable& table, const PublishedNumber& number,
                    const Scenarios& scenarios) {
  const std::vector<std::string> names = names_in(number.quantity, study.planners());
  const std::vector<double> values = number.values();
  for (size_t i = 0; i < std::min(names.size(), values.size()); ++i)
    add_published(table, fmt::format("{}: {}", number.quantity, names[i]), values[i],
                  ratios_to(study, scenarios, Ratio::throughput, names[i]));
}

// "1.08-1.81": minimum and maximum over all planners.
void add_range(Study& study, PublishedTable& table, const PublishedNumber& number,
               const Scenarios& scenarios) {
  const std::vector<double> values = number.values();
  const Ratios ours = ratios_to(study, scenarios, Ratio::throughput);
  if (values.size() != 2) return;
  const auto less = [](const auto& a, const auto& b) { return a.value < b.value; };
  Ratios least, most;
  if (!ours.counted.empty()) {
    least.counted = {*std::min_element(ours.counted.begin(), ours.counted.end(), less)};
    most.counted = {*std::max_element(ours.counted.begin(), ours.counted.end(), less)};
  }
  add_published(table, number.quantity + ": the least", values[0], least);
  add_published(table, number.quantity + ": the most", values[1], most);
}

void finish(Study& study, Section& section, const PublishedTable& table) {
  section.show(table.table());
  study.count(table);
}

constexpr const char* kPublishedCaption =
    "The paper's values come from its testbed and its own runs of the other planners; ours are compared with "
    "the runs of these planners in the data pack. The two sets of runs do not always agree.";

}  // namespace

Section homogeneous(Study& study) {
  Section section{"figure-7", "Figure 7: one GPU type", {}};
  compare(study, section, "one-type", with_prefixes(study, {"homo"}));
  PublishedTable table("one-type-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("figure 7"))
    add_by_planner(study, table, number, of_models(study.scenarios("homo-"), number.note));
  finish(study, section, table);
  return section;
}

Section mixed_types(Study& study) {
  Section section{"figures-8-9", "Figures 8 and 9: two GPU types, 1:1 and 1:3", {}};
  const Scenarios all = with_prefixes(study, {"het50-", "het25-"});
  compare(study, section, "two-types", all);
  PublishedTable table("two-types-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("figure 8")) {
    Scenarios of_ratio;
    for (const Scenario* scenario : of_models(all, number.quantity))
      if (scenario->pools.size() == 2 && scenario->pools[1].gpus % scenario->pools[0].gpus == 0 &&
          number.quantity.find(fmt::format(" 1:{}:", scenario->pools[1].gpus / scenario->pools[0].gpus)) !=
              std::string::npos)
        of_ratio.push_back(scenario);
    add_by_planner(study, table, number, of_ratio);
  }
  for (const PublishedNumber& number : study.published("figures 8 and 9")) {
    Ratios ours = ratios_to(study, all, Ratio::cost);
    if (ours.counted.empty() || number.values().empty()) continue;
    const auto most = std::max_element(ours.counted.begin(), ours.counted.end(),
                                       [](const auto& a, const auto& b) { return a.value < b.value; });
    add_published(table, number.quantity, number.values()[0], {{*most}, {}});
  }
  finish(study, section, table);
  return section;
}

Section mixed_types_small(Study& study) {
  Section section{"figure-10", "Figure 10: two GPU types, few GPUs", {}};
  section.say(
      "The paper measured these on real machines; here every plan is predicted by the published simulator, "
      "which "
      "the paper found within 4 % there.");
  const Scenarios all = study.scenarios("hetreal-");
  compare(study, section, "two-types-small", all);
  PublishedTable table("two-types-small-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("figure 10")) {
    int first = 0, second = 0;
    if (std::sscanf(number.quantity.c_str(), "%d %*s + %d", &first, &second) != 2) continue;
    Scenarios of_size;
    for (const Scenario* scenario : all)
      if (scenario->pools.size() == 2 && scenario->pools[0].gpus == first &&
          scenario->pools[1].gpus == second)
        of_size.push_back(scenario);
    add_range(study, table, number, of_size);
  }
  finish(study, section, table);
  return section;
}

Section four_zones(Study& study) {
  Section section{"figure-11", "Figure 11: one GPU type, four zones, few GPUs", {}};
  section.say("As for figure 10: measured in the paper, predicted here.");
  const Scenarios all = study.scenarios("georeal-");
  compare(study, section, "four-zones", all);
  PublishedTable table("four-zones-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("figure 11")) {
    const std::vector<std::string> names = names_in(number.quantity, study.planners());
    int sizes[2] = {0, 0};
    if (names.empty() || number.values().size() != 2 ||
        std::sscanf(number.quantity.c_str(), "%d / %d", &sizes[0], &sizes[1]) != 2)
      continue;
    for (size_t i = 0; i < 2; ++i) {
      Scenarios of_size;
      for (const Scenario* scenario : all)
        if (scenario->pools[0].gpus == sizes[i]) of_size.push_back(scenario);
      add_published(table, fmt::format("{}: {} per zone", number.quantity, sizes[i]), number.values()[i],
                    ratios_to(study, of_size, Ratio::throughput, names[0]));
    }
  }
  finish(study, section, table);
  return section;
}

Section five_zones(Study& study) {
  Section section{"figure-12", "Figure 12: one GPU type, five zones", {}};
  const Scenarios all = study.scenarios("geo-");
  compare(study, section, "five-zones", all);
  PublishedTable table("five-zones-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("figure 12")) {
    const std::vector<std::string> names = names_in(number.quantity, study.planners());
    if (names.empty() || number.values().size() != 2) continue;
    add_published(table, number.quantity + ": throughput", number.values()[0],
                  ratios_to(study, all, Ratio::throughput, names[0]));
    add_published(table, number.quantity + ": cost", number.values()[1],
                  ratios_to(study, all, Ratio::cost, names[0]));
  }
  finish(study, section, table);
  return section;
}

Section limits_of_users(Study& study) {
  Section section{"limits", "Scenarios 1 and 2: a floor of throughput, a budget", {}};
  section.say(
      "mincost: the cheapest plan with at least the given iterations/s. budget: the fastest plan that costs "
      "at most the given USD per iteration.");
  const Scenarios cheapest = study.scenarios("mincost"), fastest = study.scenarios("budget");
  Scenarios all = cheapest;
  all.insert(all.end(), fastest.begin(), fastest.end());
  compare(study, section, "limits", all);
  PublishedTable table("limits-published", kPublishedCaption);
  for (const PublishedNumber& number : study.published("scenario 1"))
    for (const std::string& name : names_in(number.quantity, study.planners())) {
      // The saved fraction of a cost ratio.
      const auto saved = [](double ratio) { return 100 * (1 - 1 / ratio); };
      std::vector<PublishedTable::Ours> ours = ratios_to(study, cheapest, Ratio::cost, name).counted;
      for (PublishedTable::Ours& one : ours) {
        one.value = saved(one.value);
        if (one.published_again) one.published_again = saved(*one.published_again);
      }
      if (!number.values().empty()) table.add(number.quantity, number.values()[0], number.unit, ours, true);
    }
  for (const PublishedNumber& number : study.published("scenario 2"))
    add_range(study, table, number, study.scenarios("budget-opt"));
  finish(study, section, table);
  return section;
}

}  // namespace sailor::bench
