// A file that is written once, from its first byte to its last, and is on the disk when finish() returns.
//
// Where the file system takes it, the bytes go past the page cache: what is written is not read again soon,
// so the cache would only be in the way (of training's own pages, and of the disk, which otherwise waits for
// the kernel's copies). One block is on its way to the disk while the next one is filled. Two blocks of
// memory. One thread per object.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

namespace sailor {

class SequentialFile {
 public:
  // Makes the file, or empties it. `bytes`, the size that it will have, lets the file system tell at once
  // when there is no room, where it can. Once `stop`, if given, is true, the next block and finish() throw.
  // Throws std::runtime_error naming path and reason, as all functions do; what is there then is the caller's
  // to remove.
  SequentialFile(std::string path, int64_t bytes, const std::atomic<bool>* stop = nullptr);
  ~SequentialFile();  // waits for what is on its way
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;

  void append(const void* data, int64_t bytes);
  int64_t size() const { return size_; }  // bytes appended
  void finish();                          // all is on the disk; nothing can be appended then

 private:
  struct Free {
    void operator()(char* memory) const;
  };

  void write_block();
  void write(const char* data, int64_t bytes);
  void wait();
  void require_going_on() const;
  void set_direct(bool wanted);

  const std::string path_;
  const std::atomic<bool>* const stop_;
  int descriptor_ = -1;
  bool direct_ = false;  // past the page cache
  std::unique_ptr<char, Free> blocks_[2];
  int filling_ = 0;      // which block
  int64_t filled_ = 0;   // bytes in it
  int64_t written_ = 0;  // bytes, of blocks before it; of the thread that writes while one does
  int64_t size_ = 0;
  std::future<void> writing_;
};

}  // namespace sailor
