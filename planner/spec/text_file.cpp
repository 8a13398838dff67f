#include "planner/spec/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/spec/error.h"

namespace sailor {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

std::string reason() {
  return std::strerror(errno);
}

[[noreturn]] void fail_write(const std::string& path) {
  throw std::runtime_error("cannot write " + path + ": " + reason());
}

void write_all(int fd, std::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    ssize_t n = write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_write(path);
    contents.remove_prefix(static_cast<size_t>(n));
  }
}

// Most of every file is ASCII: how many of the first bytes are, in steps of eight. NUL bytes are none.
size_t ascii_length(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    // The second term has a high bit where a byte is zero (and, behind such a byte, where it is one).
    if ((eight | ((eight - kOnes) & ~eight)) & kHigh) break;
  }
  return at;
}

// Length of the UTF-8 sequence at the start of `text`; 0 when it is not one.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return first == 0 ? 0 : 1;
  size_t length = first >= 0xF0 && first < 0xF5   ? 4
                  : first >= 0xE0 && first < 0xF0 ? 3
                  : first >= 0xC2 && first < 0xE0 ? 2
                                                  : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and values above U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90)) return 0;
  return length;
}

}  // namespace

void require_text(std::string_view text, const std::string& file_name) {
  size_t at = 0;
  while (at < text.size()) {
    at += ascii_length(text.substr(at));
    if (at == text.size()) break;
    size_t length = utf8_length(text.substr(at));
    if (length == 0) {
      int line =
          1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'));
      throw InputError({file_name, line}, text[at] == '\0' ? "not a text file (it holds NUL bytes)"
                                                           : "not a text file (it is not valid UTF-8)");
    }
    at += length;
  }
}

std::string read_text_file(const std::string& path) {
  // Non-blocking, so that a FIFO without a writer is refused below instead of waited for.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw InputError({path, 0}, "cannot open this file: " + reason());
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw InputError({path, 0}, "cannot read this file: " + reason());
  if (S_ISDIR(status.st_mode)) throw InputError({path, 0}, "is a directory, give a file");
  auto too_large = [&] {
    return InputError({path, 0}, "larger than 64 MiB, which is not a file of this kind");
  };
  if (S_ISREG(status.st_mode) && static_cast<uint64_t>(status.st_size) > kMaxTextFileBytes) throw too_large();
  fcntl(file.get(), F_SETFL, 0);  // a pipe with a writer (process substitution) is read to its end
  std::string text;
  text.reserve(static_cast<size_t>(status.st_size));
  char buffer[1 << 16];
  while (true) {
    ssize_t n = read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw InputError({path, 0}, "cannot read this file: " + reason());
    if (n == 0) break;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxTextFileBytes) throw too_large();
  }
  require_text(text, path);
  return text;
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) fail_write(path);
    write_all(file.get(), contents, path);
    return;
  }
  std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) fail_write(path);
  try {
    write_all(file.get(), contents, path);
    if (fsync(file.get()) != 0 || close(file.release()) != 0) fail_write(path);
    if (rename(temporary.c_str(), path.c_str()) != 0) fail_write(path);
  } catch (...) {
    unlink(temporary.c_str());
    throw;
  }
  sync_directory(std::filesystem::path(path).parent_path());
}

void sync_directory(const std::string& path) {
  const FileDescriptor directory(open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A directory may be writable and not readable.
  if (directory.get() < 0 && errno == EACCES) return;
  if (directory.get() < 0 || (fsync(directory.get()) != 0 && errno != EINVAL)) fail_write(path);
}

void create_directories_on_disk(const std::string& path) {
  std::filesystem::path made = std::filesystem::path(path).lexically_normal();
  if (!made.has_filename()) made = made.parent_path();
  std::vector<std::filesystem::path> parents;  // of new directories
  std::error_code error;
  for (; !made.empty() && !std::filesystem::exists(made, error); made = made.parent_path())
    parents.push_back(made.parent_path());
  std::filesystem::create_directories(path, error);
  if (error) throw std::runtime_error("cannot make " + path + ": " + error.message());
  for (auto parent = parents.rbegin(); parent != parents.rend(); ++parent) sync_directory(*parent);
}

std::string replace_directory(const std::string& made, const std::string& path, const std::string& aside) {
  std::string older;
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    older = made;
  } else {
    if (rename(path.c_str(), aside.c_str()) == 0)
      older = aside;
    else if (errno != ENOENT)
      fail_write(path);
    if (rename(made.c_str(), path.c_str()) != 0) fail_write(path);
  }
  sync_directory(std::filesystem::path(path).parent_path());
  return older;
}

std::string relative_to_file(const std::string& path, const std::string& base_file) {
  std::filesystem::path target(path);
  if (target.is_absolute()) return path;
  return (std::filesystem::absolute(base_file).parent_path() / target).lexically_normal().string();
}

}  // namespace sailor
