#include "trainer/data/mds/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sailor {

MdsFile::MdsFile(const MdsShard& shard, const std::string& key)
    : shard_(shard), file_(shard.path, key), key_(key) {
  const auto bytes = static_cast<int64_t>(file_.size());
  if (bytes != shard_.bytes)
    fail(fmt::format("has {} bytes, {} in {}; copy the shard again", bytes, shard_.bytes,
                     shard_.where.text()));
  const int64_t first = 4 + 4 * (shard_.samples + 1);  // the earliest place for a sample
  if (bytes < first || number_at(0) != shard_.samples)
    fail(fmt::format("does not begin with the {} samples of {}; is it another data set's shard?",
                     shard_.samples, shard_.where.text()));
  int64_t before = first;
  for (int64_t i = 0; i <= shard_.samples; ++i) {
    if (offset(i) < before) fail(fmt::format("is corrupted: sample {} begins before the one before it", i));
    before = offset(i);
  }
  if (before != bytes)
    fail(fmt::format("is corrupted: its samples end at byte {}, the file at {}", before, bytes));
}

void MdsFile::fail(const std::string& what) const {
  throw InputError(Where{path(), 0}, key_ + ": " + what);
}

uint32_t MdsFile::number_at(std::size_t position) const {
  uint32_t number;
  std::memcpy(&number, file_.data() + position, sizeof number);
  return number;
}

int64_t MdsFile::offset(int64_t sample) const {
  return number_at(4 * (1 + static_cast<std::size_t>(sample)));
}

MdsFile::Bytes MdsFile::value(int64_t sample, std::size_t column) const {
  const int64_t end = offset(sample + 1);
  int64_t size_at = offset(sample);
  int64_t at = size_at + 4 * std::count_if(shard_.columns.begin(), shard_.columns.end(),
                                           [](const MdsColumn& c) { return c.bytes == 0; });
  Bytes value;
  for (std::size_t i = 0; i < shard_.columns.size() && at <= end; ++i) {
    int64_t bytes = shard_.columns[i].bytes;
    if (bytes == 0) {
      bytes = number_at(static_cast<std::size_t>(size_at));
      size_at += 4;
    }
    if (i == column && at + bytes <= end) value = {file_.data() + at, static_cast<std::size_t>(bytes)};
    at += bytes;
  }
  if (at != end)
    fail(fmt::format("sample {} is corrupted: the sizes of its columns do not add up to its {} bytes", sample,
                     sample_bytes(sample)));
  return value;
}

}  // namespace sailor
