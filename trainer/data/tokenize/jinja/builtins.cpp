#include "trainer/data/tokenize/jinja/builtins.h"

#include <fmt/format.h>

#include <algorithm>

namespace sailor::jinja {

const std::string& BuiltinCall::text(std::size_t parameter) const {
  if (!at(parameter).is_text())
    throw TemplateError(
        fmt::format("argument {} must be a str, is a {}", parameter + 1, type_name(at(parameter))));
  return at(parameter).text();
}

int64_t BuiltinCall::integer(std::size_t parameter, int64_t otherwise) const {
  if (!has(parameter)) return otherwise;
  if (!at(parameter).is_integer())
    throw TemplateError(
        fmt::format("argument {} must be an int, is a {}", parameter + 1, type_name(at(parameter))));
  return at(parameter).integer();
}

bool BuiltinCall::flag(std::size_t parameter, bool otherwise) const {
  return has(parameter) ? is_true(at(parameter)) : otherwise;
}

Value call_builtin(const Builtin& builtin, const Value& subject, std::vector<Value> arguments,
                   std::vector<std::pair<std::string, Value>> named_arguments, Budget& budget) {
  BuiltinCall call{subject, {}, {}, budget};
  call.arguments.resize(builtin.parameters.size());
  if (builtin.takes_rest) {
    call.rest = std::move(arguments);
  } else {
    if (arguments.size() > call.arguments.size())
      throw TemplateError(fmt::format("{} takes at most {} arguments", builtin.name, call.arguments.size()));
    std::move(arguments.begin(), arguments.end(), call.arguments.begin());
  }
  for (auto& [name, value] : named_arguments) {
    const auto found = std::find(builtin.parameters.begin(), builtin.parameters.end(), name);
    if (found == builtin.parameters.end())
      throw TemplateError(fmt::format("{} has no argument {}", builtin.name, name));
    std::optional<Value>& argument =
        call.arguments[static_cast<std::size_t>(found - builtin.parameters.begin())];
    if (argument) throw TemplateError(fmt::format("{} has two values for {}", builtin.name, name));
    argument = std::move(value);
  }
  for (std::size_t i = 0; i < builtin.required; ++i) {
    if (builtin.takes_rest ? i >= call.rest.size() : !call.has(i))
      throw TemplateError(fmt::format("{} lacks an argument", builtin.name));
  }
  return builtin.function(call);
}

}  // namespace sailor::jinja
