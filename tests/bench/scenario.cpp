#include "tests/bench/scenario.h"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor::bench {
namespace {

// One line of CSV; quoted fields may hold commas.
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

std::optional<double> number(const std::string& text, const Where& where, const std::string& column) {
  if (text.empty() || text == "none") return std::nullopt;
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size()) return value;
  } catch (const std::logic_error&) {
  }
  throw InputError(where, column + ": \"" + text + "\" is not a number");
}

}  // namespace

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
  std::ifstream in(path);
  std::string text;
  if (!std::getline(in, text)) throw InputError({path, 0}, "cannot be read, or is empty");
  std::map<std::string, size_t> column;
  for (const std::string& name : split_csv(text)) column.emplace(name, column.size());
  std::vector<Scenario> scenarios;
  for (int line = 2; std::getline(in, text); ++line) {
    if (text.empty()) continue;
    const std::vector<std::string> fields = split_csv(text);
    const Where where{path, line};
    const auto get = [&](const std::string& name) -> std::string {
      const auto it = column.find(name);
      return it == column.end() || it->second >= fields.size() ? "" : fields[it->second];
    };
    const auto get_number = [&](const std::string& name) { return number(get(name), where, name); };
    Scenario s;
    s.name = get("scenario");
    s.model = get("model");
    if (s.name.empty() || s.model.empty())
      throw InputError(where, "columns `scenario` and `model` must not be empty");
    const std::string objective = get("objective");
    if (objective != "throughput" && objective != "iteration_cost" && objective != "cost")
      throw InputError(where, "objective: \"" + objective + "\" is neither throughput nor iteration_cost");
    s.objective = objective == "throughput" ? Objective::throughput : Objective::cost;
    s.max_usd = get_number("max_usd_per_iter");
    s.min_iter_per_s = get_number("min_iter_per_s");
    s.pools = parse_pools(get("gpus"), path, line);
    if (get_number("ref_search_cpu_s"))
      s.ref_cpu_s = *get_number("ref_search_cpu_s") + get_number("ref_init_cpu_s").value_or(0);
    s.ref = {get("ref_iter_per_s") == "none", get_number("ref_iter_per_s"), get_number("ref_usd_per_iter")};
    s.known = {get("known_iter_per_s") == "none", get_number("known_iter_per_s"),
               get_number("known_usd_per_iter")};
    scenarios.push_back(std::move(s));
  }
  return scenarios;
}

}  // namespace sailor::bench
