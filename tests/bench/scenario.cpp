#include "tests/bench/scenario.h"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor::bench {

std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::string CsvRow::text(const std::string& column) const {
  const auto it = cells.find(column);
  return it == cells.end() ? "" : it->second;
}

std::optional<double> CsvRow::number(const std::string& column) const {
  const std::string value = text(column);
  if (value.empty() || value == "none") return std::nullopt;
  try {
    size_t used = 0;
    const double parsed = std::stod(value, &used);
    if (used == value.size()) return parsed;
  } catch (const std::logic_error&) {
  }
  throw InputError(where, column + ": \"" + value + "\" is not a number");
}

std::vector<CsvRow> read_csv(const std::string& path) {
  std::ifstream in(path);
  std::string text;
  if (!std::getline(in, text)) throw InputError({path, 0}, "cannot be read, or is empty");
  const std::vector<std::string> columns = split_csv(text);
  std::vector<CsvRow> rows;
  for (int line = 2; std::getline(in, text); ++line) {
    if (text.empty()) continue;
    const std::vector<std::string> fields = split_csv(text);
    CsvRow row{{}, {path, line}};
    for (size_t i = 0; i < columns.size() && i < fields.size(); ++i) row.cells.emplace(columns[i], fields[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PoolSize> parse_pools(const std::string& text, const std::string& file, int line) {
  std::vector<PoolSize> pools;
  std::istringstream in(text);
  PoolSize pool;
  std::string zone, plus;
  while (in >> pool.gpus >> pool.gpu_type >> zone) {
    if (zone.size() < 2 || zone[0] != '@' || pool.gpus < 1) break;
    pool.zone = zone.substr(1);
    pools.push_back(pool);
    if (!(in >> plus)) return pools;
    if (plus != "+") break;
  }
  throw InputError({file, line}, "gpus: \"" + text + "\" is not like \"32 TYPE @ZONE + 8 TYPE @ZONE\"");
}

std::vector<Scenario> load_scenarios(const std::string& path) {
  std::vector<Scenario> scenarios;
  for (const CsvRow& row : read_csv(path)) {
    Scenario s;
    s.name = row.text("scenario");
    s.model = row.text("model");
    if (s.name.empty() || s.model.empty())
      throw InputError(row.where, "columns `scenario` and `model` must not be empty");
    const std::string objective = row.text("objective");
    if (objective != "throughput" && objective != "iteration_cost" && objective != "cost")
      throw InputError(row.where,
                       "objective: \"" + objective + "\" is neither throughput nor iteration_cost");
    s.objective = objective == "throughput" ? Objective::throughput : Expense::cost;
    s.max_usd = row.number("max_usd_per_iter");
    s.min_iter_per_s = row.number("min_iter_per_s");
    s.pools = parse_pools(row.text("gpus"), path, row.where.line);
    if (row.number("ref_search_cpu_s"))
      s.ref_cpu_s = *row.number("ref_search_cpu_s") + row.number("ref_init_cpu_s").value_or(0);
    s.ref = {row.text("ref_iter_per_s") == "none", row.number("ref_iter_per_s"),
             row.number("ref_usd_per_iter")};
    s.ref_note = row.text("ref_note");
    s.known = {row.text("known_iter_per_s") == "none", row.number("known_iter_per_s"),
               row.number("known_usd_per_iter")};
    scenarios.push_back(std::move(s));
  }
  return scenarios;
}

}  // namespace sailor::bench
