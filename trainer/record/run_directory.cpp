#include "trainer/record/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "planner/process/file_descriptor.h"
#include "planner/spec/text_file.h"

namespace sailor {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& action, const std::string& path) {
  throw std::runtime_error(fmt::format("cannot {} {}: {}", action, path, std::strerror(errno)));
}

// One write call, so that a reader or a kill sees all of the text or none of it.
void write_whole(int fd, const std::string& text, const std::string& path) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", path);
    done += static_cast<size_t>(n);
  }
}

}  // namespace

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {
  create_directories_on_disk(path_ + "/logs");
  std::error_code error;
  path_ = fs::absolute(path_).lexically_normal().string();
  // A later run reuses the directory: the state of the previous run's emulated links is discarded.
  fs::remove_all(path_ + "/links", error);
  fs::create_directory(path_ + "/links", error);
  if (error) throw std::runtime_error(fmt::format("cannot make {}/links: {}", path_, error.message()));
}

void RunDirectory::write_document(const std::string& name, const std::string& text) const {
  write_file_atomically(file(name), text);
}

void RunDirectory::remove(const std::string& name) const {
  std::error_code error;
  fs::remove(file(name), error);
  if (error) throw std::runtime_error(fmt::format("cannot remove {}: {}", file(name), error.message()));
}

void RunDirectory::append_line(const std::string& name, const std::string& line) const {
  const std::string path = file(name);
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!file.valid()) fail("open", path);
  // A power cut may have torn the last line: the new one is not part of it.
  char last = '\n';
  const off_t bytes = lseek(file.get(), 0, SEEK_END);
  if (bytes > 0 && pread(file.get(), &last, 1, bytes - 1) < 0) fail("read", path);
  write_whole(file.get(), (last == '\n' ? "" : "\n") + line + "\n", path);
}

void RunDirectory::sync(const std::string& name) const {
  const std::string path = file(name);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || fsync(file.get()) != 0) fail("sync", path);
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (line.find_first_not_of(" \t-*") != std::string::npos) last = line;
  }
  return last;
}

}  // namespace sailor
