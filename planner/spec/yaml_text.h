// Parts of YAML files that the product writes. Internal to the readers and writers of its files.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sailor {

// A text as YAML: plain where it is plainly a text, else in double quotes.
std::string yaml_text(const std::string& text);
// `[a, b]`
std::string yaml_list(const std::vector<std::string>& texts);
// `KEY:` and a line per row; empty when there is no price.
std::string yaml_table(const char* key, const std::map<std::string, std::map<std::string, double>>& table);

}  // namespace sailor
