// The objective of a plan: time, or one of the expenses of an iteration, which may also be limited. An
// expense is one row of a table (kind_of); code that searches, limits, stores or prints expenses iterates
// over kExpenses. Value types.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sailor {

// What GPUs consume per second and traffic per byte.
enum class Expense { cost, energy };
inline constexpr std::array kExpenses = {Expense::cost, Expense::energy};

// One value for each expense.
template <typename T>
class PerExpense {
 public:
  T& operator[](Expense expense) { return values_[static_cast<size_t>(expense)]; }
  const T& operator[](Expense expense) const { return values_[static_cast<size_t>(expense)]; }

  bool operator==(const PerExpense&) const = default;

 private:
  std::array<T, kExpenses.size()> values_{};
};

// Names and texts of an expense.
struct ExpenseKind {
  const char* name;    // of the objective
  const char* unit;    // of one iteration's
  const char* column;  // of tables: `USD`
  // Keys of files; `max_` and `bound_` are put before the first one.
  const char* per_iteration_key;
  const char* per_run_key;
  const char* per_million_tokens_key;
  const char* gpus_key;     // the share of the GPUs
  const char* traffic_key;  // the share of traffic between zones; null = traffic is free
  const char* option;       // the option that limits it, without `--` or a prefix
  const char* limit;        // name of a limit
  const char* less;         // adjective for a plan with less of it: `cheaper`
  const char* least;        // `cheapest`
  const char* more;         // `more expensive`
  const char* takes;        // `costs`
  std::optional<double> (*parse)(std::string_view text);
  const char* expected;  // by parse, for messages
  const char* rate_key;  // of a GPU type in the catalog
};
const ExpenseKind& kind_of(Expense expense);
// Is an expense shown and written? Cost always, every other where it is known.
inline bool is_told(Expense expense, bool known) {
  return expense == Expense::cost || known;
}
std::string limit_key(Expense expense);  // `max_usd_per_iteration`
std::string bound_key(Expense expense);  // `bound_usd_per_iteration`

// All quantities of an iteration that can be minimized or limited.
struct Figures {
  double iteration_s = 0;
  PerExpense<double> spent;
};

// Minimizes time (throughput) or an expense.
class Objective {
 public:
  static const Objective throughput;

  constexpr Objective() = default;  // throughput
  constexpr Objective(Expense expense) : expense_(expense) {}

  // Nothing: minimizes time.
  std::optional<Expense> expense() const { return expense_; }
  // The value to minimize.
  double value(const Figures& figures) const {
    return expense_ ? figures.spent[*expense_] : figures.iteration_s;
  }
  // Relative improvement of a value: more iterations per second, or less spent per iteration.
  double gain(double value, double than) const { return expense_ ? 1 - value / than : than / value - 1; }
  const char* better() const { return expense_ ? kind_of(*expense_).less : "faster"; }

  bool operator==(const Objective&) const = default;

 private:
  std::optional<Expense> expense_;
};
inline constexpr Objective Objective::throughput{};

const char* to_string(Objective objective);
// In the order of kExpenses, after throughput.
const std::vector<std::string>& objective_names();
Objective objective_at(size_t name);                 // of objective_names()
Objective parse_objective(const std::string& text);  // throws InputError

}  // namespace sailor
