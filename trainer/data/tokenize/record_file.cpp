#include "trainer/data/tokenize/record_file.h"

#include <filesystem>
#include <fstream>

#include "trainer/data/tokenize/json_lines.h"
#include "trainer/data/tokenize/mds_records.h"
#include "trainer/data/tokenize/parquet/parquet_records.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

std::string first_bytes(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(Where{file, 0}, "cannot read");
  std::string start(4, '\0');
  in.read(start.data(), static_cast<std::streamsize>(start.size()));
  return start;
}

std::vector<DataFile> shards(const std::string& directory, const RecordFields& fields) {
  std::vector<DataFile> files;
  for (const MdsShard& shard : read_mds_index(directory)) {
    MdsRecords::require_fields(shard, fields);
    files.push_back({shard.path, shard.bytes, [=] { return std::make_unique<MdsRecords>(shard, fields); }});
  }
  return files;
}

}  // namespace

std::vector<DataFile> data_files(const std::string& path, const RecordFields& fields) {
  if (is_mds_directory(path)) return shards(path, fields);
  if (fs::is_directory(path))
    throw InputError(Where{path, 0}, "is a directory without " + kMdsIndex + "; name the files in it");
  if (fs::path(path).filename() == kMdsIndex) return shards(fs::path(path).parent_path(), fields);
  if (is_mds_shard(path)) throw InputError(Where{path, 0}, "is a shard of a data set; name its directory");
  std::error_code error;
  const auto bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (error) throw InputError(Where{path, 0}, "cannot read: " + error.message());
  const std::string start = first_bytes(path);
  if (start == "PAR1") {
    open_parquet(path, fields);  // to tell errors before the work begins
    return {{path, bytes, [=] { return open_parquet(path, fields); }}};
  }
  // What would be read as text by mistake.
  if (path.ends_with(".parquet")) throw InputError(Where{path, 0}, "is no Parquet file; copy it again");
  if (start.starts_with("\x1f\x8b") || start == "\x28\xb5\x2f\xfd")
    throw InputError(Where{path, 0}, "is compressed; decompress it first");
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson"))
    return {{path, bytes, [=] { return std::make_unique<JsonLines>(path, fields.form); }}};
  return {{path, bytes, {}}};
}

}  // namespace sailor
