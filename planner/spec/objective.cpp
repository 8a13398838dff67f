#include "planner/spec/objective.h"

#include <algorithm>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor {
namespace {

constexpr ExpenseKind kKinds[] = {
    {.name = "cost",
     .unit = "USD",
     .column = "USD",
     .per_iteration_key = "usd_per_iteration",
     .per_run_key = "usd_per_run",
     .per_million_tokens_key = "usd_per_million_tokens",
     .gpus_key = "compute_usd",
     .traffic_key = "transfer_usd",
     .option = "max-cost",
     .limit = "budget",
     .less = "cheaper",
     .least = "cheapest",
     .more = "more expensive",
     .takes = "costs",
     .parse = parse_money,
     .expected = "an amount in USD above 0",
     .rate_key = "usd_per_hour"},
    {.name = "energy",
     .unit = "J",
     .column = "J",
     .per_iteration_key = "joules_per_iteration",
     .per_run_key = "joules_per_run",
     .per_million_tokens_key = "joules_per_million_tokens",
     .gpus_key = nullptr,
     .traffic_key = nullptr,
     .option = "max-energy",
     .limit = "energy limit",
     .less = "more efficient",
     .least = "most efficient",
     .more = "less efficient",
     .takes = "takes",
     .parse = parse_energy,
     .expected = "an energy above 0, such as 50kJ",
     .rate_key = "watts"},
};
static_assert(std::size(kKinds) == kExpenses.size());

}  // namespace

const ExpenseKind& kind_of(Expense expense) {
  return kKinds[static_cast<size_t>(expense)];
}

std::string limit_key(Expense expense) {
  return std::string("max_") + kind_of(expense).per_iteration_key;
}
std::string bound_key(Expense expense) {
  return std::string("bound_") + kind_of(expense).per_iteration_key;
}

const std::vector<std::string>& objective_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out = {"throughput"};
    for (const Expense expense : kExpenses) out.emplace_back(kind_of(expense).name);
    return out;
  }();
  return names;
}

Objective objective_at(size_t name) {
  return name == 0 ? Objective::throughput : Objective(kExpenses.at(name - 1));
}

const char* to_string(Objective objective) {
  return objective.expense() ? kind_of(*objective.expense()).name : objective_names().front().c_str();
}

Objective parse_objective(const std::string& text) {
  const auto& names = objective_names();
  const auto it = std::find(names.begin(), names.end(), text);
  if (it == names.end())
    throw InputError("objective: must be " + alternatives(names) + ", is " + in_quotes(text) +
                     did_you_mean(text, names));
  return objective_at(static_cast<size_t>(it - names.begin()));
}

}  // namespace sailor
