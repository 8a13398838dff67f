// Directories for tests that write files. Tests run as separate processes, several at a time.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace sailor::test {

// An empty directory that no other process uses; removed when the process ends.
inline std::string scratch_directory(const std::string& name) {
  struct Made {
    std::vector<std::filesystem::path> paths;
    ~Made() {
      std::error_code ignored;
      for (const std::filesystem::path& path : paths) std::filesystem::remove_all(path, ignored);
    }
  };
  static Made made;
  made.paths.push_back(std::filesystem::path(::testing::TempDir()) /
                       ("sailor-" + std::to_string(getpid()) + "-" + name));
  std::filesystem::remove_all(made.paths.back());
  std::filesystem::create_directories(made.paths.back());
  return made.paths.back().string();
}

}  // namespace sailor::test
