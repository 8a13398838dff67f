// Files of records: JSONL (*.jsonl, *.ndjson), a record per line; Parquet, a record per row; and shards in
// MosaicML's format (MDS), a record per sample. Records are read one after the other, in memory for one of
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/spec/error.h"

namespace sailor {

struct DataRecord {
  nlohmann::json fields;  // an object
  std::string json;       // the same as text, if the file has it
  Where where;
  int64_t position = 0, end = 0;  // its bytes in the file
};

class RecordFile {
 public:
  virtual ~RecordFile() = default;
  // The next record; false after the last one. Throws InputError at a record that cannot be read,
  // std::runtime_error when reading fails.
  virtual bool next(DataRecord& record) = 0;
};

// Which fields of a record are read: files with columns skip the others.
struct RecordFields {
  std::vector<std::string> names;
  std::string form;  // an example of a record, for errors
};

// A file to read: of records, or a text.
struct DataFile {
  std::string path;
  int64_t bytes = 0;
  std::function<std::unique_ptr<RecordFile>()> records;  // opens it; empty for a text file
};

// The files of a path: itself, or the shards of a directory in MosaicML's format. Throws InputError naming
// what cannot be read, is compressed, or has columns but none of `fields`.
std::vector<DataFile> data_files(const std::string& path, const RecordFields& fields);

}  // namespace sailor
