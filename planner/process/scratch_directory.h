// A private temporary directory, removed with its content when the object is destroyed.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace sailor {

class ScratchDirectory {
 public:
  // Its path begins with `prefix`. Throws std::runtime_error.
  explicit ScratchDirectory(const std::filesystem::path& prefix = std::filesystem::temp_directory_path() /
                                                                  "sailor-")
      : path_(prefix.string() + "XXXXXX") {
    if (!mkdtemp(path_.data())) throw std::runtime_error("cannot make a temporary directory " + path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sailor
