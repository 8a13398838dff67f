#include "trainer/checkpoint/sequential_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

namespace sailor {
namespace {

constexpr int64_t kFileBlockBytes = int64_t{8} << 20;
constexpr int64_t kDirectAlignment = 4096;  // of memory, place and size of what goes past the page cache

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

}  // namespace

void SequentialFile::Free::operator()(char* memory) const {
  std::free(memory);
}

SequentialFile::SequentialFile(std::string path, int64_t bytes, const std::atomic<bool>* stop)
    : path_(std::move(path)), stop_(stop) {
  for (auto& block : blocks_) {
    block.reset(static_cast<char*>(std::aligned_alloc(kDirectAlignment, kFileBlockBytes)));
    if (!block) throw std::bad_alloc();
  }
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path_);
  set_direct(true);
  // A file system that cannot reserve space returns another error; then the writes detect a lack of space.
  if (bytes > 0 && fallocate(descriptor_, 0, 0, bytes) != 0 && (errno == ENOSPC || errno == EDQUOT)) {
    const int reason = errno;
    close(descriptor_);
    errno = reason;
    fail(path_);
  }
}

SequentialFile::~SequentialFile() {
  if (writing_.valid()) writing_.wait();
  if (descriptor_ >= 0) close(descriptor_);
}

void SequentialFile::set_direct(bool wanted) {
  const int flags = fcntl(descriptor_, F_GETFL);
  const bool done =
      flags >= 0 && fcntl(descriptor_, F_SETFL, wanted ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  direct_ = wanted && done;
}

void SequentialFile::require_going_on() const {
  if (stop_ != nullptr && *stop_) throw std::runtime_error(fmt::format("{}: given up", path_));
}

void SequentialFile::append(const void* data, int64_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const int64_t part = std::min(bytes, kFileBlockBytes - filled_);
    std::memcpy(blocks_[filling_].get() + filled_, from, static_cast<std::size_t>(part));
    filled_ += part;
    size_ += part;
    from += part;
    bytes -= part;
    if (filled_ == kFileBlockBytes) write_block();
  }
}

// The other block is then free to be filled.
void SequentialFile::write_block() {
  require_going_on();
  wait();
  writing_ = std::async(std::launch::async,
                        [this, data = blocks_[filling_].get(), bytes = filled_] { write(data, bytes); });
  filling_ = 1 - filling_;
  filled_ = 0;
}

void SequentialFile::wait() {
  if (writing_.valid()) writing_.get();
}

// At the end of what is there. `data` is a block's memory.
void SequentialFile::write(const char* data, int64_t bytes) {
  const int64_t first = written_;
  for (int64_t done = 0; done < bytes;) {
    // What does not fill the alignment, and comes last, takes the way through the page cache.
    const int64_t aligned = (bytes - done) / kDirectAlignment * kDirectAlignment;
    if (direct_ && (aligned == 0 || done % kDirectAlignment != 0)) set_direct(false);
    const ssize_t n = pwrite(descriptor_, data + done,
                             static_cast<std::size_t>(direct_ ? aligned : bytes - done), written_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL && direct_) {  // it took the flag, but not the writes
      set_direct(false);
      continue;
    }
    if (n < 0) fail(path_);
    done += n;
    written_ += n;
  }
  // Lets the disk begin now instead of in finish(); where that cannot be, finish() takes longer.
  if (!direct_) sync_file_range(descriptor_, first, bytes, SYNC_FILE_RANGE_WRITE);
}

void SequentialFile::finish() {
  if (filled_ > 0) write_block();
  wait();
  require_going_on();
  if (ftruncate(descriptor_, size_) != 0 || fsync(descriptor_) != 0) fail(path_);
  if (close(std::exchange(descriptor_, -1)) != 0) fail(path_);
}

}  // namespace sailor
