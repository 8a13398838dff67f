#include "tests/fuzz/bundle.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sailor::fuzz {

std::map<std::string, std::string> split_bundle(const std::string& input) {
  std::map<std::string, std::string> files;
  const std::string mark = "=== ";
  size_t at = input.rfind(mark, 0) == 0 ? 0 : input.find("\n" + mark);
  while (at != std::string::npos) {
    if (input[at] == '\n') ++at;
    const size_t name = at + mark.size(), end = input.find('\n', name);
    if (end == std::string::npos) break;
    at = input.find("\n" + mark, end);
    const size_t stop = at == std::string::npos ? input.size() : at + 1;
    files[input.substr(name, end - name)] = input.substr(end + 1, stop - end - 1);
  }
  return files;
}

Directory::Directory(std::vector<std::string> names) : names_(std::move(names)) {
  const std::string base = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  root_ = base + "/sailor-fuzz-" + std::to_string(getpid());
  for (const std::string& name : names_)
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
}

Directory::~Directory() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void Directory::fill(const std::map<std::string, std::string>& bundle) const {
  for (const std::string& name : names_) {
    const auto file = bundle.find(name);
    if (file == bundle.end())
      std::filesystem::remove(path(name));
    else
      std::ofstream(path(name), std::ios::binary | std::ios::trunc) << file->second;
  }
}

}  // namespace sailor::fuzz
