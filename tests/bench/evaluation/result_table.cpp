#include "tests/bench/evaluation/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "planner/report/timeline_pipelines.h"

namespace sailor::bench {
namespace {

const char* class_of(Mark mark) {
  switch (mark) {
    case Mark::good:
      return "good";
    case Mark::bad:
      return "bad";
    case Mark::aside:
      return "aside";
    case Mark::ours:
      return "ours";
    case Mark::plain:
      break;
  }
  return "";
}

// Is this a number, with or without a unit?
bool is_number(const std::string& text) {
  if (text.empty() || text == "-") return true;
  const size_t from = text.find_first_not_of("<>~ ");
  char* end = nullptr;
  const char* begin = text.c_str() + (from == std::string::npos ? 0 : from);
  std::strtod(begin, &end);
  if (end == begin) return false;
  const std::string unit = end;
  return unit.empty() || unit == "x" || unit == " %" || unit == " s";
}

bool is_numeric(const ResultTable& table, size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const std::vector<Cell>& row) { return is_number(row[column].text); });
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string with_bars_escaped(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

}  // namespace

void ResultTable::add(std::vector<Cell> row) {
  if (row.size() != columns.size())
    throw std::logic_error(
        fmt::format("table {}: {} cells for {} columns", name, row.size(), columns.size()));
  rows.push_back(std::move(row));
}

std::string to_html(const ResultTable& table) {
  std::vector<bool> numeric;
  for (size_t i = 0; i < table.columns.size(); ++i) numeric.push_back(is_numeric(table, i));
  std::string out = fmt::format("<p>{}</p>\n<div class=\"wide\"><table id=\"{}\">\n<tr>",
                                xml_escaped(table.caption), xml_escaped(table.name));
  for (size_t i = 0; i < table.columns.size(); ++i)
    out += fmt::format("<th{}>{}</th>", numeric[i] ? "" : " class=\"word\"", xml_escaped(table.columns[i]));
  out += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      constexpr size_t kLong = 30;  // characters; longer cells are wrapped
      std::string classes = class_of(row[i].mark);
      if (!numeric[i]) classes += " word";
      if (row[i].text.size() > kLong) classes += " long";
      out += fmt::format("<td{}>{}</td>", classes.empty() ? "" : " class=\"" + classes + "\"",
                         xml_escaped(row[i].text));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

std::string to_markdown(const ResultTable& table) {
  std::string out = table.caption + "\n\n|";
  for (const std::string& column : table.columns) out += " " + with_bars_escaped(column) + " |";
  out += "\n|";
  for (size_t i = 0; i < table.columns.size(); ++i) out += is_numeric(table, i) ? "---:|" : "---|";
  for (const std::vector<Cell>& row : table.rows) {
    out += "\n|";
    for (const Cell& cell : row) {
      const std::string text = with_bars_escaped(cell.text);
      out += cell.mark == Mark::bad && !text.empty() ? " **" + text + "** |" : " " + text + " |";
    }
  }
  return out + "\n";
}

std::string to_csv(const ResultTable& table) {
  const auto line = [](const auto& cells, auto text_of) {
    std::string out;
    for (const auto& cell : cells) out += (&cell == &cells.front() ? "" : ",") + quoted(text_of(cell));
    return out + "\n";
  };
  std::string out = line(table.columns, [](const std::string& text) { return text; });
  for (const std::vector<Cell>& row : table.rows)
    out += line(row, [](const Cell& cell) { return cell.text; });
  return out;
}

std::string figure(std::optional<double> value, int digits) {
  if (!value) return "-";
  if (!std::isfinite(*value)) throw std::logic_error("a figure that is not finite");
  return fmt::format("{:.{}g}", *value, digits);
}

std::string factor(double value) {
  figure(value);
  return fmt::format("{:.{}f}x", value, value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
}

std::string per_cent(double value) {
  figure(value);
  return fmt::format("{:.2f}", std::max(0.0, value));
}

}  // namespace sailor::bench
