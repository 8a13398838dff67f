#include "trainer/data/tokenize/json_lines.h"

#include <fmt/format.h>

#include <stdexcept>

#include "trainer/data/tokenize/record.h"

namespace sailor {

bool JsonLines::next(DataRecord& record) {
  for (std::string line; std::getline(in_, line);) {
    record.position = position_;
    position_ += static_cast<int64_t>(line.size()) + (in_.eof() ? 0 : 1);
    record.end = position_;
    ++line_;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    record.where = {path_, line_};
    record.fields = parse_record(line, form_, record.where);
    record.json = std::move(line);
    return true;
  }
  if (in_.bad() || !in_.eof()) throw std::runtime_error(fmt::format("{}: reading failed", path_));
  return false;
}

}  // namespace sailor
