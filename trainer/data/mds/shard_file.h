// A shard in MosaicML's MDS format, mapped into memory: the number of samples, their offsets, a copy of the
// shard's entry in the index, and the samples. A sample has the sizes of the columns whose size varies, 32
// bits each, and the values of all columns in their order. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trainer/data/mapped_file.h"
#include "trainer/data/mds/index.h"

namespace sailor {

class MdsFile {
 public:
  using Bytes = std::span<const unsigned char>;

  // Checks the file against the index, and the offsets. Throws InputError naming the file, and `key` as
  // MappedFile does.
  MdsFile(const MdsShard& shard, const std::string& key);

  const std::string& path() const { return file_.path(); }
  int64_t samples() const { return shard_.samples; }
  const MdsShard& shard() const { return shard_; }

  int64_t sample_bytes(int64_t sample) const { return offset(sample + 1) - offset(sample); }
  // What a column has in a sample. Throws InputError if the sample's sizes contradict its offsets.
  Bytes value(int64_t sample, std::size_t column) const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  uint32_t number_at(std::size_t position) const;
  int64_t offset(int64_t sample) const;

  MdsShard shard_;
  MappedFile file_;
  std::string key_;
};

}  // namespace sailor
