// The index of a data set in MosaicML's MDS format (the `streaming` library): DIRECTORY/index.json, which
// lists the shards. Shards may be in subdirectories (a merged index).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/spec/error.h"

namespace sailor {

struct MdsColumn {
  std::string name;
  std::string encoding;  // `ndarray:int32`, `bytes`, `str`
  int64_t bytes = 0;     // of a value; 0: every sample has its own number
};

struct MdsShard {
  std::string path;  // of the uncompressed file
  Where where;       // in the index
  int64_t bytes = 0, samples = 0;
  std::vector<MdsColumn> columns;  // in the order of a sample's values

  // Throws InputError, naming the columns that exist, unless one has the name.
  std::size_t column(const std::string& name, const std::string& hint) const;
  std::string column_list() const;  // `text: str, tokens: ndarray:int32`
};

inline const std::string kMdsIndex = "index.json";
bool is_mds_directory(const std::string& path);  // has an index
bool is_mds_shard(const std::string& path);      // by its name

// The shards in the order of the index, at least one. Throws InputError naming the index and the line: not
// readable, another version or format, compressed without the uncompressed file next to it.
std::vector<MdsShard> read_mds_index(const std::string& directory);

}  // namespace sailor
