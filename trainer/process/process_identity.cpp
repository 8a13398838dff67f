#include "trainer/process/process_identity.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace sailor {

int64_t process_start_ticks() {
  std::ifstream file("/proc/self/stat");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // The second field, the program's name, may contain any characters; it ends with the last parenthesis.
  std::istringstream fields(text.substr(text.rfind(')') == std::string::npos ? 0 : text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number < 22; ++number) fields >> field;
  int64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

}  // namespace sailor
