// Files of named tensors in the safetensors format: an 8-byte little-endian length, a JSON header of that
// length, and the tensors' bytes. The header is
//
//     {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
//
// Reading is strict: no byte outside the file is ever read, whatever the header says, and every tensor has
// exactly the bytes of its shape and type. A file that violates the format (overlaps, holes, unused bytes,
// unknown types, repeated names) is an InputError that names the file and the error. Needs no libtorch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/sequential_file.h"

namespace sailor {

struct StoredTensor {
  std::string name;
  std::string dtype;  // F64, F32, F16, BF16, I64, ...
  std::vector<int64_t> shape;
  int64_t first_byte = 0;  // offset in the file
  int64_t bytes = 0;
};

// Bytes of an element; 0 for a type that the format does not have, or that is smaller than a byte.
int64_t stored_element_bytes(const std::string& dtype);
// More bytes than any file has.
constexpr int64_t kMostStoredBytes = int64_t{1} << 60;
// Bytes of a tensor; -1 for a shape that no tensor of a file can have.
int64_t stored_bytes(const std::string& dtype, const std::vector<int64_t>& shape);

// An open file. Reading is thread-safe.
class SafetensorsFile {
 public:
  // Reads and checks the header. Throws InputError.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&& other) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of the file
  const StoredTensor* find(const std::string& name) const;               // nullptr when absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Bytes [first, first + count) of a tensor of this file. Throws std::runtime_error when reading fails.
  void read(const StoredTensor& tensor, int64_t first, int64_t count, void* out) const;

 private:
  std::string path_;
  int fd_ = -1;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

// Writes a file whose tensors have known shapes before their contents are known: through a temporary file in
// the same directory that finish() syncs and renames. Without finish() nothing remains.
class SafetensorsWriter {
 public:
  // Names, types and shapes; offsets are assigned here. `checksums`, if given, sees the whole file and
  // outlives the object. Once `stop`, if given, is true, writing throws std::runtime_error. Throws
  // std::runtime_error when the file cannot be written, std::logic_error for an invalid type or shape.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                    const std::map<std::string, std::string>& metadata, BlockChecksums* checksums = nullptr,
                    const std::atomic<bool>* stop = nullptr);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  const std::vector<StoredTensor>& tensors() const { return tensors_; }  // in the order of the file
  int64_t file_bytes() const { return file_bytes_; }

  // The complete next tensor of tensors(). Throws std::logic_error if it is another one.
  void write(const std::string& name, const void* data, int64_t bytes);
  // Throws std::logic_error when a tensor was not written.
  void finish();

 private:
  void append(const void* data, int64_t bytes);

  const std::string path_, temporary_;
  std::vector<StoredTensor> tensors_;
  std::size_t next_ = 0;  // next to be written
  int64_t file_bytes_ = 0;
  BlockChecksums* const checksums_;
  std::unique_ptr<SequentialFile> file_;  // until finish()
};

}  // namespace sailor
