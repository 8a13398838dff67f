#include "trainer/data/mds/index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "planner/spec/field.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = UINT32_MAX;  // of a shard, whose offsets have 32 bits

// Unlike MapField, lets keys pass that are not known: the library adds some with its releases.
std::optional<Field> member(const Field& map, std::string_view key) {
  const DocumentNode* node = map.node().find(key);
  if (node == nullptr || node->kind == DocumentNode::Kind::null) return std::nullopt;
  return Field(map.document(), *node);
}

Field required(const Field& map, std::string_view key) {
  if (!map.is_map()) map.fail_type("an object");
  if (auto found = member(map, key)) return *found;
  map.fail(fmt::format("has no \"{}\"; write the data again with the streaming library", key));
}

std::vector<MdsColumn> read_columns(const Field& shard) {
  const std::vector<Field> names = required(shard, "column_names").items();
  const std::vector<Field> encodings = required(shard, "column_encodings").items();
  const std::vector<Field> sizes = required(shard, "column_sizes").items();
  if (encodings.size() != names.size() || sizes.size() != names.size())
    shard.fail("column_names, column_encodings and column_sizes have different lengths");
  std::vector<MdsColumn> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool varies = sizes[i].node().kind == DocumentNode::Kind::null;
    columns.push_back({names[i].text(), encodings[i].text(), varies ? 0 : sizes[i].integer(0L, kMostBytes)});
  }
  return columns;
}

void require_uncompressed(const Field& shard, const fs::path& directory, const std::string& name) {
  const auto zip = member(shard, "zip_data");
  if (!zip || fs::exists(directory / name)) return;
  const std::string compressed = required(*zip, "basename").text();
  std::string how;
  if (compressed.ends_with(".zstd"))
    how = fmt::format(": for f in {}/*.zstd; do zstd -d \"$f\" -o \"${{f%.zstd}}\"; done",
                      (directory / compressed).parent_path().string());
  shard.fail(fmt::format("{} is compressed, and cannot be mapped into memory; decompress the shards first{}",
                         compressed, how));
}

MdsShard read_shard(const Field& field, const fs::path& directory) {
  if (const auto version = required(field, "version").integer<int64_t>(0, kMostBytes); version != 2)
    field.fail(fmt::format("is of version {}, this program reads 2", version));
  if (const std::string format = required(field, "format").text(); format != "mds")
    field.fail(fmt::format("has the format {}, this program reads mds; write it with MDSWriter", format));
  const Field raw = required(field, "raw_data");
  const std::string name = required(raw, "basename").text();
  require_uncompressed(field, directory, name);
  MdsShard shard;
  shard.path = directory / name;
  shard.where = field.where();
  shard.bytes = required(raw, "bytes").integer(0L, kMostBytes);
  shard.samples = required(field, "samples").integer(0L, kMostBytes);
  shard.columns = read_columns(field);
  return shard;
}

}  // namespace

std::string MdsShard::column_list() const {
  std::vector<std::string> list;
  for (const MdsColumn& column : columns) list.push_back(column.name + ": " + column.encoding);
  return fmt::format("{}", fmt::join(list, ", "));
}

std::size_t MdsShard::column(const std::string& name, const std::string& hint) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return i;
  }
  throw InputError(where, fmt::format("has no column {} (columns: {}); {}", name, column_list(), hint));
}

bool is_mds_directory(const std::string& path) {
  return fs::is_regular_file(fs::path(path) / kMdsIndex);
}

bool is_mds_shard(const std::string& path) {
  return path.ends_with(".mds") || path.ends_with(".mds.zstd");
}

std::vector<MdsShard> read_mds_index(const std::string& directory) {
  const std::string path = fs::path(directory) / kMdsIndex;
  const std::string text = read_text_file(path);
  const Document document = parse_json(text, path);
  std::vector<MdsShard> shards;
  for (const Field& shard : required(Field(document), "shards").items())
    shards.push_back(read_shard(shard, directory));
  if (shards.empty()) throw InputError(Where{path, 0}, "lists no shards");
  return shards;
}

}  // namespace sailor
