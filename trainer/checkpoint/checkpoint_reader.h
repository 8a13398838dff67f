// Reads runs of elements out of a checkpoint, whoever wrote them, and only bytes whose checksum is right.
//
//     CheckpointReader reader(path, open_checkpoint(path));
//     reader.read(reader.find("3.qkv.weight"), first, count, buffer);
//
// Of the files, only the blocks (block_checksums.h) that hold the wanted bytes are read; reading in the order
// of the manifest reads none twice. Needs no libtorch. One thread per object.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_manifest.h"

namespace sailor {

class CheckpointReader {
 public:
  CheckpointReader(std::string path, CheckpointManifest manifest);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  const std::string& path() const { return path_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  const CheckpointTensor* find(const std::string& name) const;  // nullptr when absent

  // Elements [first, first + count) of a tensor of manifest(), in its type. Throws CheckpointDamaged when
  // what is in the files is not what was written, or cannot be read.
  void read(const CheckpointTensor* tensor, int64_t first, int64_t count, void* out);
  // Reads every file whole. Throws CheckpointDamaged.
  void verify();
  // Read from the files so far.
  int64_t bytes_read() const { return bytes_read_; }

 private:
  struct Place {
    std::size_t file = 0;
    CheckpointPiece piece;
  };
  void read_bytes(std::size_t file, int64_t first, int64_t count, char* out);
  void fetch_block(std::size_t file, int64_t block, char* out);
  void check_block(std::size_t file, int64_t block, const char* bytes) const;
  const std::vector<char>& cached_block(std::size_t file, int64_t block);
  int64_t block_bytes(std::size_t file, int64_t block) const;

  const std::string path_;
  const CheckpointManifest manifest_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::vector<Place>> places_;  // by tensor, in the order of elements
  std::vector<int> descriptors_;            // by file; -1 = not open yet
  struct CachedBlock {
    int64_t block = -1;
    std::vector<char> bytes;
  };
  std::map<std::size_t, CachedBlock> cache_;  // one block each of a few files
  int64_t bytes_read_ = 0;
};

}  // namespace sailor
