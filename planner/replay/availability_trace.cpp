#include "planner/replay/availability_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>

#include "planner/spec/document.h"
#include "planner/spec/error.h"
#include "planner/spec/field.h"
#include "planner/spec/text.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

constexpr int kMostUnits = 1'000'000;
constexpr double kMost_s = 1e12;

// One line of a CSV file.
class Row {
 public:
  Row(const std::string& line, Where where) : where_(std::move(where)) {
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) cells_.push_back(cell);
  }

  size_t size() const { return cells_.size(); }
  const std::string& text(size_t i) const { return cells_[i]; }
  double time_s(size_t i) const { return number(i, kMost_s); }
  int count(size_t i) const {
    const double value = number(i, kMostUnits);
    if (value != std::floor(value))
      fail("a number of GPUs or nodes must be an integer, is " + in_quotes(cells_[i]));
    return static_cast<int>(value);
  }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_, what); }

 private:
  double number(size_t i, double most) const {
    double value = 0;
    const char *begin = cells_[i].data(), *end = begin + cells_[i].size();
    const auto [rest, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || rest != end || !(value >= 0) || value > most)
      fail("expected a number from 0 on, found " + in_quotes(cells_[i]));
    return value;
  }

  Where where_;
  std::vector<std::string> cells_;
};

void add(AvailabilityTrace& trace, double at_s, std::vector<int> count, const Row& row) {
  if (!trace.changes.empty() && at_s < trace.end_s) row.fail("times must not go back");
  trace.end_s = at_s;
  if (!trace.changes.empty() && trace.changes.back().at_s == at_s) trace.changes.pop_back();
  if (!trace.changes.empty() && trace.changes.back().count == count) return;
  trace.changes.push_back({at_s, std::move(count)});
}

// Pools by the header's columns TYPE_ZONE from the third on.
std::vector<TracePool> pools_of(const Row& header) {
  std::vector<TracePool> pools;
  for (size_t i = 2; i < header.size(); ++i) {
    const std::string& name = header.text(i);
    const size_t middle = name.find('_');
    if (middle == 0 || middle == std::string::npos || middle + 1 == name.size())
      header.fail("a column must be named TYPE_ZONE, is " + in_quotes(name));
    pools.push_back({name.substr(0, middle), name.substr(middle + 1)});
  }
  if (pools.empty()) header.fail("there is no column of GPUs");
  return pools;
}

AvailabilityTrace parse_csv(const std::string& text, const std::string& file) {
  AvailabilityTrace trace;
  trace.file = file;
  std::istringstream lines(text);
  std::optional<double> start_s;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const Row row(line, {file, number});
    if (trace.pools.empty()) {
      if (row.size() >= 2 && row.text(1) == "Timestamp") {
        trace.pools = pools_of(row);
        continue;
      }
      trace.unit = AvailabilityTrace::Unit::nodes;
      trace.pools = {{}};
    }
    const size_t first = trace.unit == AvailabilityTrace::Unit::nodes ? 0 : 1;
    if (row.size() != first + 1 + trace.pools.size())
      row.fail("expected " + std::to_string(first + 1 + trace.pools.size()) + " columns, found " +
               std::to_string(row.size()));
    const double at_s = row.time_s(first);
    if (!start_s) start_s = at_s;
    if (at_s < *start_s) row.fail("times must not go back");
    std::vector<int> count;
    for (size_t i = 0; i < trace.pools.size(); ++i) count.push_back(row.count(first + 1 + i));
    add(trace, at_s - *start_s, std::move(count), row);
  }
  return trace;
}

AvailabilityTrace parse_json_trace(const std::string& text, const std::string& file) {
  const Document document = parse_json(text, file);
  AvailabilityTrace trace;
  trace.file = file;
  trace.pools = {{}};
  std::optional<double> start_s;
  for (const Field& item : Field(document).items()) {
    MapField map(item, {"Time", "GPUs"});
    const double at_s = map.required("Time").number(0, kMost_s);
    if (!start_s) start_s = at_s;
    if (at_s < *start_s + trace.end_s) map.required("Time").fail("times must not go back");
    add(trace, at_s - *start_s, {map.required("GPUs").integer<int>(0, kMostUnits)},
        Row("", {file, item.node().line}));
  }
  return trace;
}

}  // namespace

AvailabilityTrace parse_trace(const std::string& text, const std::string& file_name) {
  require_text(text, file_name);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  AvailabilityTrace trace = begin != std::string::npos && text[begin] == '['
                                ? parse_json_trace(text, file_name)
                                : parse_csv(text, file_name);
  if (trace.changes.empty()) throw InputError({file_name, 0}, "a trace needs at least one row");
  return trace;
}

AvailabilityTrace load_trace(const std::string& path) {
  return parse_trace(read_text_file(path), path);
}

}  // namespace sailor
