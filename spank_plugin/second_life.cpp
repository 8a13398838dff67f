#include "spank_plugin/second_life.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "spank_plugin/batch_script.h"

namespace sailor {
namespace {

constexpr char kVariable[] = "SAILOR_SECOND_LIFE";  // PID:DESCRIPTOR

}  // namespace

void leave_to_second_life(const EnvironmentVariables& variables) {
  std::string content;
  for (const auto& [name, value] : variables) content += name + "=" + value + '\0';
  int memory = memfd_create("sailor-plan", 0);
  if (memory < 0)
    throw std::runtime_error(fmt::format("cannot keep the plan in memory: {}", strerror(errno)));
  for (size_t done = 0; done < content.size();) {
    ssize_t count = write(memory, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw std::runtime_error(fmt::format("cannot keep the plan in memory: {}", strerror(errno)));
    done += static_cast<size_t>(count);
  }
  setenv(kVariable, fmt::format("{}:{}", getpid(), memory).c_str(), 1);
}

std::optional<EnvironmentVariables> take_from_first_life() {
  const char* value = getenv(kVariable);
  if (value == nullptr) return std::nullopt;
  int pid = 0;
  int memory = -1;
  bool ours = sscanf(value, "%d:%d", &pid, &memory) == 2 && pid == getpid() && memory > STDERR_FILENO;
  unsetenv(kVariable);
  if (!ours) return std::nullopt;
  std::string content = read_descriptor(memory, 0);
  close(memory);
  EnvironmentVariables variables;
  for (size_t begin = 0; begin < content.size();) {
    size_t end = std::min(content.find('\0', begin), content.size());
    std::string entry = content.substr(begin, end - begin);
    size_t equals = entry.find('=');
    if (equals == std::string::npos) throw std::runtime_error("the plan left by the first sbatch is damaged");
    variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
    begin = end + 1;
  }
  return variables;
}

}  // namespace sailor
