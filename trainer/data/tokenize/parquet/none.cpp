#include "trainer/data/tokenize/parquet/parquet_records.h"

namespace sailor {

std::unique_ptr<RecordFile> open_parquet(const std::string& path, const RecordFields&) {
  throw InputError(
      Where{path, 0},
      "is Parquet, which this build cannot read: install Apache Arrow's libparquet-dev and build "
      "again, or convert the file to JSONL (pandas.read_parquet(...).to_json(..., orient=\"records\", "
      "lines=True))");
}

}  // namespace sailor
