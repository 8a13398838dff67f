// The records of a shard in MosaicML's format, from its columns of texts (`str`) and of JSON.
#pragma once

#include "trainer/data/mds/shard_file.h"
#include "trainer/data/tokenize/record_file.h"

namespace sailor {

class MdsRecords final : public RecordFile {
 public:
  MdsRecords(const MdsShard& shard, const RecordFields& fields);
  bool next(DataRecord& record) override;

  // Throws InputError unless the shard has one of the fields, and all that it has can be read.
  static void require_fields(const MdsShard& shard, const RecordFields& fields);

 private:
  MdsFile file_;
  std::vector<std::size_t> columns_;
  int64_t sample_ = 0, position_ = 0;
};

}  // namespace sailor
