// Reads ranges of elements from a checkpoint, independent of the plan that wrote it, and checks every block
// read.
//
//     CheckpointReader reader(path, open_checkpoint(path));
//     reader.read(reader.find("3.qkv.weight"), first, count, buffer);
//
// Only the blocks (block_checksums.h) with the requested bytes are read; reading in the order of the manifest
// reads each block once. Needs no libtorch. One thread per object.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
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

  // Elements [first, first + count) of a tensor of manifest(), in its type. Throws CheckpointDamaged when the
  // files are corrupted or cannot be read.
  void read(const CheckpointTensor* tensor, int64_t first, int64_t count, void* out);
  // Announces later calls of read(), in their order: the disk reads ahead.
  void announce(const CheckpointTensor* tensor, int64_t first, int64_t count);
  // Reads every file completely; `progress` gets the number of bytes done, of manifest().bytes(). Throws
  // CheckpointDamaged.
  void verify(const std::function<void(int64_t done_bytes)>& progress = {});
  // Bytes read from the files so far.
  int64_t bytes_read() const { return bytes_read_; }
  // Announced bytes, and those that read() has returned. Thread-safe.
  int64_t bytes_announced() const { return bytes_announced_; }
  int64_t bytes_delivered() const { return bytes_delivered_; }

 private:
  struct Place {
    std::size_t file = 0;
    CheckpointPiece piece;
  };
  struct Range {  // in a file
    std::size_t file = 0;
    int64_t first = 0, bytes = 0;
  };
  // The places of elements in the files, in order.
  std::vector<Range> ranges_of(const CheckpointTensor* tensor, int64_t first, int64_t count) const;
  void announce(const Range& range);
  void work_ahead();
  int descriptor_of(std::size_t file);
  void read_bytes(std::size_t file, int64_t first, int64_t count, char* out);
  void fetch(std::size_t file, int64_t begin, int64_t bytes, char* out);
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
  std::atomic<int64_t> bytes_announced_ = 0, bytes_delivered_ = 0;
  std::deque<Range> announced_;  // not yet requested from the disk
  int64_t ahead_ = 0;            // requested from the disk, and not read yet
};

}  // namespace sailor
