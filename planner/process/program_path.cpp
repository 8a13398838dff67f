#include "planner/process/program_path.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace sailor {
namespace fs = std::filesystem;

std::string program_path(const std::string& name) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path libexec = here.parent_path() / "libexec" / "sailor";
  for (const fs::path& folder : {here, libexec}) {
    const fs::path candidate = folder / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  throw std::runtime_error(
      fmt::format("{} is missing: looked in {} and {}", name, here.string(), libexec.string()));
}

}  // namespace sailor
