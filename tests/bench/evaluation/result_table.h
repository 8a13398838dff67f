// A table of results with three output formats: HTML, Markdown and CSV. Cells have their meaning as text;
// marks only help the eye. Value types; pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace sailor::bench {

enum class Mark { plain, good, bad, aside, ours };

struct Cell {
  std::string text;
  Mark mark = Mark::plain;

  Cell(std::string what, Mark how = Mark::plain) : text(std::move(what)), mark(how) {}
  Cell(const char* what, Mark how = Mark::plain) : text(what), mark(how) {}
};

struct ResultTable {
  std::string name;  // of its file, without the ending
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;

  // Throws std::logic_error unless there is a cell for every column.
  void add(std::vector<Cell> row);
};

std::string to_html(const ResultTable& table);
std::string to_markdown(const ResultTable& table);  // the caption, then the table
std::string to_csv(const ResultTable& table);

// `value` with this number of significant digits; "-" if absent. Throws std::logic_error for values that are
// not finite: a table never contains "nan".
std::string figure(std::optional<double> value, int digits = 4);
std::string factor(double value);    // "1.15x", "23.4x", "1850x"
std::string per_cent(double value);  // "0.03"

}  // namespace sailor::bench
