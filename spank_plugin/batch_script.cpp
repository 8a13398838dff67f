#include "spank_plugin/batch_script.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "planner/spec/error.h"

namespace sailor {
namespace {

// Larger than any script that Slurm takes (4 MiB by default).
constexpr size_t kMaxScriptBytes = size_t{16} << 20;

bool is_readable_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), R_OK) == 0;
}

}  // namespace

bool is_job_spec(const std::string& script) {
  if (script.compare(0, 2, "#!") != 0) return false;
  std::istringstream words(script.substr(2, script.find('\n') - 2));
  std::string previous;
  for (std::string word; words >> word; previous = word) {
    std::string program = previous.substr(previous.rfind('/') + 1);
    if (word == "run" && program == "sailor") return true;
  }
  return false;
}

std::optional<std::string> job_spec_of_command(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words[0].substr(words[0].rfind('/') + 1) == "sailor") {
    if (words.size() < 2 || words[1] != "run") return std::nullopt;
    auto file = std::find_if(words.begin() + 2, words.end(),
                             [](const std::string& word) { return word.compare(0, 1, "-") != 0; });
    return file == words.end() ? std::nullopt : std::optional<std::string>(*file);
  }
  if (!is_readable_file(words[0])) return std::nullopt;
  std::string line(256, '\0');
  std::ifstream file(words[0], std::ios::binary);
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  return is_job_spec(line) ? std::optional<std::string>(words[0]) : std::nullopt;
}

void refuse_components(const std::string& script, const std::string& name) {
  std::istringstream lines(script);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string directive;
    std::string word;
    words >> directive >> word;
    if (directive == "#SBATCH" && (word == "hetjob" || word == "packjob")) {
      throw InputError({name, number},
                       fmt::format("#SBATCH {}: the planner chooses the components; remove it", word));
    }
  }
}

std::string find_script(const std::string& argument) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(argument, error);
  if (!error && is_readable_file(absolute)) return absolute.lexically_normal().string();
  const char* path = getenv("PATH");
  if (argument.find('/') == std::string::npos && path != nullptr) {
    std::istringstream directories(path);
    for (std::string directory; std::getline(directories, directory, ':');) {
      std::filesystem::path candidate = std::filesystem::path(directory) / argument;
      if (!directory.empty() && is_readable_file(candidate)) return candidate.string();
    }
  }
  throw InputError({argument}, "cannot read the batch script; name an existing file");
}

std::string read_descriptor(int descriptor, long offset) {
  std::string text;
  char buffer[65536];
  while (true) {
    ssize_t count = pread(descriptor, buffer, sizeof buffer, offset + static_cast<long>(text.size()));
    if (count == 0) return text;
    if (count < 0) {
      if (errno == EINTR) continue;
      throw std::runtime_error(
          fmt::format("cannot read the script from standard input: {}", strerror(errno)));
    }
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > kMaxScriptBytes) throw InputError("the script on standard input is larger than 16 MiB");
  }
}

}  // namespace sailor
