#include "trainer/data/tokenize/mds_records.h"

#include <fmt/format.h>

#include <algorithm>

#include "planner/spec/name_list.h"
#include "trainer/data/tokenize/record.h"

namespace sailor {
namespace {

const std::string kKey = "TEXT";  // the argument that named the directory

}  // namespace

MdsRecords::MdsRecords(const MdsShard& shard, const RecordFields& fields) : file_(shard, kKey) {
  for (std::size_t i = 0; i < shard.columns.size(); ++i) {
    if (contains(fields.names, shard.columns[i].name)) columns_.push_back(i);
  }
}

void MdsRecords::require_fields(const MdsShard& shard, const RecordFields& fields) {
  bool found = false;
  for (const auto& [name, encoding, bytes] : shard.columns) {
    if (!contains(fields.names, name)) continue;
    found = true;
    if (encoding != "str" && encoding != "json")
      throw InputError(shard.where,
                       fmt::format("column {} has the encoding {}, which holds no text (known: str, json); a "
                                   "column of tokens is trained on as it is: data.train",
                                   name, encoding));
  }
  if (!found) shard.column(fields.names.front(), "name the column of the text with --column");
}

bool MdsRecords::next(DataRecord& record) {
  if (sample_ == file_.samples()) return false;
  record.where = {fmt::format("{}, sample {}", file_.path(), sample_), 0};
  record.position = position_;
  record.end = position_ += file_.sample_bytes(sample_);
  record.fields = nlohmann::json::object();
  for (const std::size_t column : columns_) {
    const auto& [name, encoding, size] = file_.shard().columns[column];
    const MdsFile::Bytes bytes = file_.value(sample_, column);
    std::string text(bytes.begin(), bytes.end());
    if (encoding == "str")
      record.fields[name] = std::move(text);
    else
      record.fields[name] = parse_value(text, "", {record.where.file + ", column " + name, 0});
  }
  ++sample_;
  return true;
}

}  // namespace sailor
