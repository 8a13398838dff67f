#include "tests/convert/csv.h"

#include <cmath>

#include "planner/spec/quantity.h"
#include "planner/spec/text_file.h"

namespace sailor::convert {
namespace {

// Splits into records of cells; a quoted cell may hold commas, quotes and line breaks.
struct Record {
  std::vector<std::string> cells;
  int line;
};

std::vector<Record> split(const std::string& text) {
  std::vector<Record> records;
  Record record{{}, 1};
  std::string cell;
  bool quoted = false, any = false;
  int line = 1;
  const auto end_record = [&] {
    if (any || !cell.empty()) {
      record.cells.push_back(cell);
      records.push_back(record);
    }
    record = {{}, line};
    cell.clear();
    any = false;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = any = true;
    } else if (c == ',') {
      record.cells.push_back(cell);
      cell.clear();
      any = true;
    } else if (c == '\n') {
      end_record();
    } else if (c != '\r') {
      cell += c;
    }
  }
  end_record();
  return records;
}

}  // namespace

const std::string& CsvRow::text(const std::string& column) const {
  const auto at = columns_->find(column);
  if (at == columns_->end()) fail("no column \"" + column + "\" in this file");
  return cells_[at->second];
}

std::optional<double> CsvRow::optional_number(const std::string& column) const {
  return parse_number(text(column));
}

double CsvRow::number(const std::string& column) const {
  const auto value = optional_number(column);
  if (!value) fail(column + ": \"" + text(column) + "\" is not a number");
  return *value;
}

int CsvRow::integer(const std::string& column) const {
  const double value = number(column);
  if (value != std::floor(value) || std::fabs(value) > 2e9)
    fail(column + ": \"" + text(column) + "\" is not an integer");
  return static_cast<int>(value);
}

int CsvRow::integer_or(const std::string& column, int otherwise) const {
  return empty(column) ? otherwise : integer(column);
}

bool CsvRow::flag(const std::string& column) const {
  const std::string& value = text(column);
  return value == "true" || value == "True" || value == "1";
}

void load_csv(const std::string& path, Csv& csv) {
  const std::vector<Record> records = split(read_text_file(path));
  if (records.empty()) throw InputError({path, 0}, "an empty file");
  for (size_t i = 0; i < records[0].cells.size(); ++i) csv.columns[records[0].cells[i]] = i;
  for (size_t r = 1; r < records.size(); ++r) {
    const Where where{path, records[r].line};
    if (records[r].cells.size() != records[0].cells.size())
      throw InputError(where, std::to_string(records[r].cells.size()) + " cells, the header has " +
                                  std::to_string(records[0].cells.size()));
    csv.rows.emplace_back(&csv.columns, records[r].cells, where);
  }
}

}  // namespace sailor::convert
