// Functions that every template may call: range, namespace, dict, raise_exception and strftime_now.
#pragma once

#include <ctime>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

// The value of such a name.
struct Statement;
struct Function {
  std::string name;
  const Statement* macro = nullptr;  // of a macro; a function or a method otherwise
};

struct FunctionCall {
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named_arguments;
  std::deque<Namespace>& namespaces;  // where new ones are made
  const std::tm& now;
  Budget& budget;
};

bool is_function(std::string_view name);
// Requires is_function(name). Throws TemplateError: wrong arguments, and always for raise_exception.
Value call_function(std::string_view name, FunctionCall call);

}  // namespace sailor::jinja
