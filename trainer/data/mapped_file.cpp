#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "planner/process/file_descriptor.h"
#include "planner/spec/error.h"

namespace sailor {

MappedFile::MappedFile(const std::string& path, const std::string& key) : path_(path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0)
    throw InputError(Where{path, 0}, fmt::format("{}: cannot read: {}", key, std::strerror(errno)));
  if (!S_ISREG(status.st_mode))
    throw InputError(Where{path, 0}, key + ": not a file; name files or a glob of files");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) throw std::runtime_error(fmt::format("{}: mmap: {}", path, std::strerror(errno)));
  data_ = static_cast<const unsigned char*>(mapped);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<unsigned char*>(data_), size_);
}

}  // namespace sailor
