#include "spank_plugin/spank_options.h"

#include <string>
#include <vector>

namespace sailor {
namespace {

// SPANK's callbacks carry no context pointer: the values need one place in the process.
OptionValues& values() {
  static OptionValues given;
  return given;
}

int collect(int index, const char* argument, int remote) {
  if (remote != 0) return 0;
  try {
    const OptionDefinition& definition = option_definitions().at(static_cast<size_t>(index));
    values()[definition.name] = argument == nullptr ? "" : argument;
    return 0;
  } catch (...) {
    return -1;
  }
}

}  // namespace

void register_options(spank_t spank) {
  const std::vector<OptionDefinition>& definitions = option_definitions();
  for (size_t i = 0; i < definitions.size(); ++i) {
    // Slurm copies the texts; the structure wants non-const pointers all the same.
    spank_option option{const_cast<char*>(definitions[i].name),
                        const_cast<char*>(definitions[i].argument),
                        const_cast<char*>(definitions[i].usage),
                        definitions[i].argument != nullptr ? 1 : 0,
                        static_cast<int>(i),
                        collect};
    spank_option_register(spank, &option);
  }
}

const OptionValues& given_options() {
  return values();
}

}  // namespace sailor
