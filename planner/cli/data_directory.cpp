#include "planner/cli/data_directory.h"

#include <cstdlib>
#include <filesystem>

#include "planner/spec/error.h"

namespace sailor::cli {

namespace fs = std::filesystem;

std::string assumptions_directory() {
  if (const char* given = std::getenv("SAILOR_ASSUMPTIONS"); given != nullptr && *given != '\0') return given;
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path directory = self.parent_path().parent_path() / "share" / "sailor";
  if (error || !fs::is_directory(directory, error)) {
    throw InputError("no catalog, platforms and frameworks are installed with this program (" +
                     directory.string() + "): give --assumptions DIR or set SAILOR_ASSUMPTIONS");
  }
  return directory.string();
}

}  // namespace sailor::cli
