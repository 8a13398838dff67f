#include "trainer/process/process_title.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace sailor {
namespace {

// The memory that the kernel shows as the command line.
struct Region {
  char* begin = nullptr;
  char* end = nullptr;
};

// Fields 48 and 49 of /proc/self/stat; the second one, the program's name, may contain spaces.
Region find_command_line() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  constexpr size_t kBegin = 48 - 3;  // the first field here is the third
  if (fields.size() < kBegin + 2) return {};
  const Region region{reinterpret_cast<char*>(std::stoull(fields[kBegin])),
                      reinterpret_cast<char*>(std::stoull(fields[kBegin + 1]))};
  return region.begin != nullptr && region.begin < region.end ? region : Region{};
}

// The C library's names of the program are in this memory too.
void keep_program_names(const Region& region) {
  for (char** name : {&program_invocation_name, &program_invocation_short_name}) {
    if (*name >= region.begin && *name < region.end) *name = strdup(*name);
  }
}

}  // namespace

void set_process_title(const std::string& title, const std::string& name) {
  prctl(PR_SET_NAME, name.c_str());
  static const Region region = [] {
    const Region found = find_command_line();
    keep_program_names(found);
    return found;
  }();
  if (region.begin == nullptr) return;
  const auto room = static_cast<size_t>(region.end - region.begin);
  const size_t length = std::min(title.size(), room - 1);
  memcpy(region.begin, title.data(), length);
  memset(region.begin + length, 0, room - length);
}

}  // namespace sailor
