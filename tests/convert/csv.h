// A CSV file with a header line and RFC 4180 quoting. Values are looked up by column name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/spec/error.h"

namespace sailor::convert {

class CsvRow {
 public:
  CsvRow(const std::map<std::string, size_t>* columns, std::vector<std::string> cells, Where where)
      : columns_(columns), cells_(std::move(cells)), where_(std::move(where)) {}

  // The text of a column; throws InputError if the file has no such column.
  const std::string& text(const std::string& column) const;
  bool empty(const std::string& column) const { return text(column).empty(); }
  double number(const std::string& column) const;  // throws InputError if it is not a number
  std::optional<double> optional_number(const std::string& column) const;  // nothing if it is not a number
  int integer(const std::string& column) const;
  int integer_or(const std::string& column, int otherwise) const;  // an empty cell is `otherwise`
  bool flag(const std::string& column) const;                      // true, True, 1
  const Where& where() const { return where_; }
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_, what); }

 private:
  const std::map<std::string, size_t>* columns_;
  std::vector<std::string> cells_;
  Where where_;
};

struct Csv {
  std::map<std::string, size_t> columns;
  std::vector<CsvRow> rows;  // refer to `columns`: the object must not be copied

  Csv() = default;
  Csv(const Csv&) = delete;
  Csv& operator=(const Csv&) = delete;
};

// Throws InputError when the file cannot be read or a row has a different number of cells than the header.
void load_csv(const std::string& path, Csv& csv);

}  // namespace sailor::convert
