// The fuzzers' entry points. `PROGRAM --target=NAME [libFuzzer's options] CORPUS...`; without a target it
// prints their names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "planner/spec/error.h"
#include "tests/fuzz/targets.h"

namespace {

const sailor::fuzz::Target* chosen = nullptr;

}  // namespace

void sailor::fuzz::broken(const std::string& what) {
  std::fprintf(stderr, "BROKEN: %s\n", what.c_str());
  std::abort();
}

void sailor::fuzz::check_error_text(const std::string& text) {
  if (text.empty() || text.find('\n') != std::string::npos) broken("not one line: " + text);
  if (text.size() > 4096) broken("an endless error: " + text.substr(0, 200));
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string option = "--target=";  // libFuzzer leaves options with two dashes alone
  for (int i = 1; i < *argc; ++i)
    if (std::strncmp((*argv)[i], option.c_str(), option.size()) == 0) {
      const auto it = sailor::fuzz::targets().find((*argv)[i] + option.size());
      if (it != sailor::fuzz::targets().end()) chosen = &it->second;
    }
  if (chosen == nullptr) {
    for (const auto& [name, target] : sailor::fuzz::targets()) std::printf("%s\n", name.c_str());
    std::exit(*argc == 1 ? 0 : 2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    (*chosen)(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const sailor::InputError& error) {
    sailor::fuzz::check_error_text(error.what());
  }
  return 0;
}
