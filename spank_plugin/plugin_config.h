// The plugin's own settings: key=value words after its name in plugstack.conf. Pure.
//
//     config=PATH    the site config (default: $SAILOR_CONFIG, else /etc/sailor/sailor.yaml)
#pragma once

#include <string>

namespace sailor {

struct PluginConfig {
  std::string site_config;  // empty = the default
};

// Throws InputError on an unknown key. Only called when a job is planned: an error in plugstack.conf never
// breaks plain jobs.
PluginConfig parse_plugin_config(int argc, char* const* argv);

}  // namespace sailor
