#include "tests/bench/prunings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "planner/search/search.h"

namespace sailor::bench {
namespace {

std::set<std::string> all_prunings() {
  const std::vector<std::string> names = feature_names();
  return {names.begin(), names.end()};
}

struct Sums {
  double search_cpu_s = 0, slowest_s = 0;
  double configurations = 0, labels = 0;
  int compared = 0, equal = 0, stopped = 0;
};

std::string times(double without, double with) {
  return with > 0 ? fmt::format("{:.1f}x", without / with) : "-";
}

bool same_answer(const RowResult& a, const RowResult& b) {
  if (a.value == 0 || b.value == 0) return a.value == b.value && a.status == b.status;
  return std::abs(a.value / b.value - 1) <= 1e-9;
}

void add(Sums& sums, const RowResult& with, const RowResult& row) {
  sums.search_cpu_s += row.search_cpu_s;
  sums.slowest_s = std::max(sums.slowest_s, row.search_cpu_s);
  sums.configurations += static_cast<double>(row.configurations);
  sums.labels += static_cast<double>(row.labels);
  // What a search has found when it is stopped is no answer.
  if (!row.ended || !with.ended) {
    ++sums.stopped;
    return;
  }
  ++sums.compared;
  sums.equal += same_answer(with, row);
}

std::string line(const std::string& name, const Sums& sums, const Sums& base) {
  return fmt::format("{:<20} {:>9.3f} {:>8} {:>9.3f} {:>12.0f} {:>8} {:>12.0f} {:>8} {:>9} {:>8}", name,
                     sums.search_cpu_s, times(sums.search_cpu_s, base.search_cpu_s), sums.slowest_s,
                     sums.configurations, times(sums.configurations, base.configurations), sums.labels,
                     times(sums.labels, base.labels), fmt::format("{}/{}", sums.equal, sums.compared),
                     sums.stopped);
}

// "2 GPU types x 128, NAME: ..." of the paper's table.
struct PaperRow {
  int types = 0, gpus = 0;
  std::string model;
  std::string value, note;
};

std::vector<PaperRow> table_3(const std::string& path) {
  std::vector<PaperRow> rows;
  if (!std::filesystem::exists(path)) return rows;
  for (const CsvRow& csv : read_csv(path)) {
    if (csv.text("where") != "table 3") continue;
    const std::string quantity = csv.text("quantity");
    PaperRow row;
    char model[65] = "";
    if (std::sscanf(quantity.c_str(), "%d GPU type%*[s ]x %d, %64[^:]", &row.types, &row.gpus, model) != 3)
      continue;
    row.model = model;
    row.value = csv.text("value");
    row.note = csv.text("note");
    rows.push_back(row);
  }
  return rows;
}

// Is this a throughput scenario of that model over as many types of as many GPUs each, in one zone?
bool is_about(const PaperRow& row, const Scenario& scenario) {
  if (scenario.objective != Objective::throughput || scenario.model.rfind(row.model, 0) != 0 ||
      scenario.pools.size() != static_cast<size_t>(row.types))
    return false;
  return std::all_of(scenario.pools.begin(), scenario.pools.end(), [&](const PoolSize& pool) {
    return pool.gpus == row.gpus && pool.zone == scenario.pools[0].zone;
  });
}

}  // namespace

bool print_prunings(const std::vector<Scenario>& scenarios, const std::vector<RowResult>& with,
                    const RowRunner& run, const std::function<void(const std::string&)>& print) {
  Sums base;
  for (const RowResult& row : with) add(base, row, row);
  print(fmt::format("{:<20} {:>9} {:>8} {:>9} {:>12} {:>8} {:>12} {:>8} {:>9} {:>8}", "WITHOUT", "CPU (s)",
                    "", "SLOWEST", "LOOKED AT", "", "LABELS", "", "EQUAL", "STOPPED"));
  print(line("(nothing)", base, base));
  std::vector<std::pair<std::string, std::set<std::string>>> cases;
  for (const std::string& name : feature_names()) cases.push_back({name, {name}});
  cases.push_back({"all of them", all_prunings()});
  bool equal = true;
  for (const auto& [name, without] : cases) {
    Sums sums;
    for (size_t i = 0; i < scenarios.size(); ++i) {
      const RowResult row = run(scenarios[i], without);
      if (row.ended && with[i].ended && !same_answer(with[i], row)) {
        equal = false;
        print(fmt::format("  {}: another answer without {}: {:.9g} instead of {:.9g}", scenarios[i].name,
                          name, row.value, with[i].value));
      }
      add(sums, with[i], row);
    }
    print(line(name, sums, base));
  }
  return equal;
}

std::string search_seconds(const RowResult& row) {
  return fmt::format("{}{:.3f}", row.ended ? "" : ">", row.search_cpu_s);
}

std::vector<PruningRow> measure_table_3(const std::string& path, const std::vector<Scenario>& scenarios,
                                        const std::vector<RowResult>& with, const RowRunner& run) {
  std::vector<PruningRow> rows;
  for (const PaperRow& paper : table_3(path)) {
    PruningRow row{paper.types, paper.gpus, paper.model, {}, {}, std::nullopt, 0, paper.value, paper.note};
    const Scenario* free = nullptr;
    for (size_t i = 0; i < scenarios.size(); ++i) {
      if (!is_about(paper, scenarios[i])) continue;
      if (!scenarios[i].max_usd && free == nullptr) {
        free = &scenarios[i];
        row.all = with[i];
      } else if (scenarios[i].max_usd && !row.limited) {
        row.limited = with[i];
        row.max_usd = *scenarios[i].max_usd;
      }
    }
    if (free == nullptr) continue;
    row.bare = run(*free, all_prunings());
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_table_3(const std::vector<PruningRow>& rows,
                   const std::function<void(const std::string&)>& print) {
  if (rows.empty()) return;
  print(
      "table 3, search seconds: no pruning / all / all and a budget (the paper: dynamic programming only / "
      "+ heuristics / + cost limit)");
  for (const PruningRow& row : rows)
    print(fmt::format("  {} x {}, {}: {} / {} / {}{}    the paper: {} ({})", row.types, row.gpus, row.model,
                      search_seconds(row.bare), search_seconds(row.all),
                      row.limited ? search_seconds(*row.limited) : "-",
                      row.limited ? fmt::format(" ({} USD)", row.max_usd) : "", row.published, row.note));
}

}  // namespace sailor::bench
