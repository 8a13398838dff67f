// A file that is written once, from start to end, and is on disk when finish() returns.
//
// If the file system supports it, writes bypass the page cache: the data is not read again soon, so the cache
// would only compete with training's own pages, and the disk would wait for the kernel's copies. One block is
// being written while the next one is filled. Uses two blocks of memory. One thread per object.
#pragma once

#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <string>

namespace sailor {

class SequentialFile {
 public:
  // Creates or truncates the file. `bytes`, its final size, lets the file system report a lack of space at
  // once, where it can. Once `stop`, if given, is true, the next block and finish() throw. All functions
  // throw std::runtime_error naming path and reason; the caller then removes the file.
  SequentialFile(std::string path, int64_t bytes, const std::atomic<bool>* stop = nullptr);
  ~SequentialFile();  // waits for pending writes
  SequentialFile(const SequentialFile&) = delete;
  SequentialFile& operator=(const SequentialFile&) = delete;

  void append(const void* data, int64_t bytes);
  int64_t size() const { return size_; }  // bytes appended
  void finish();                          // everything is on disk; nothing can be appended afterwards

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
  bool direct_ = false;  // bypasses the page cache
  std::unique_ptr<char, Free> blocks_[2];
  int filling_ = 0;      // index of the block
  int64_t filled_ = 0;   // bytes in it
  int64_t written_ = 0;  // bytes of earlier blocks; owned by the writing thread while there is one
  int64_t size_ = 0;
  std::future<void> writing_;
};

}  // namespace sailor
