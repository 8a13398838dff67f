#include "spank_plugin/plugin_config.h"

#include <fmt/format.h>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {

PluginConfig parse_plugin_config(int argc, char* const* argv) {
  PluginConfig config;
  for (int i = 0; i < argc; ++i) {
    std::string word = argv[i];
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals);
    if (key != "config" || equals == std::string::npos || equals + 1 == word.size()) {
      throw InputError(
          fmt::format("plugstack.conf: {}: unknown argument of spank_sailor.so{} (known: config=PATH)",
                      in_quotes(word), did_you_mean(key, {"config"})));
    }
    config.site_config = word.substr(equals + 1);
  }
  return config;
}

}  // namespace sailor
