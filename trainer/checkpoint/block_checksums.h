// Checksums of a file, one for every block of 1 MiB from its first byte on (the last one may be shorter), so
// that a reader can check a part of the file. 128-bit XXH3, as 32 hexadecimal digits per block: it detects
// errors of disks, networks and crashes, several times faster than these are; it does not protect against
// intentional changes. One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace sailor {

constexpr int64_t kChecksumBlockBytes = int64_t{1} << 20;
constexpr int64_t kChecksumDigits = 32;

std::string checksum_of(const void* data, int64_t bytes);

class BlockChecksums {
 public:
  BlockChecksums();
  ~BlockChecksums();
  BlockChecksums(const BlockChecksums&) = delete;
  BlockChecksums& operator=(const BlockChecksums&) = delete;

  void add(const void* data, int64_t bytes);  // the file's next bytes
  std::string finish();                       // of all blocks; call it once

 private:
  void end_block();

  struct State;
  std::unique_ptr<State> state_;
  int64_t in_block_ = 0;
  std::string digits_;
};

}  // namespace sailor
