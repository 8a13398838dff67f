#include "tests/bench/evaluation/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
    case Mark::plain:
      break;
  }
  return "";
}

// Does the column hold numbers only, with or without a unit behind them?
bool is_numeric(const ResultTable& table, size_t column) {
  for (const std::vector<Cell>& row : table.rows) {
    const std::string& text = row[column].text;
    if (!text.empty() && text != "-" && text.find_first_of("0123456789") > 1) return false;
    if (std::count(text.begin(), text.end(), ' ') > 1) return false;
  }
  return !table.rows.empty();
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
  const char* left = " style=\"text-align:left\"";
  for (size_t i = 0; i < table.columns.size(); ++i)
    out += fmt::format("<th{}>{}</th>", numeric[i] ? "" : left, xml_escaped(table.columns[i]));
  out += "</tr>\n";
  for (const std::vector<Cell>& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string mark = class_of(row[i].mark);
      out += fmt::format("<td{}{}>{}</td>", numeric[i] ? "" : left,
                         mark.empty() ? "" : " class=\"" + mark + "\"", xml_escaped(row[i].text));
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
  return figure(value, value >= 10 ? 3 : value >= 0.995 ? 3 : 2) + "x";
}

}  // namespace sailor::bench
