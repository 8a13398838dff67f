// What is fuzzed: one function per kind of input. Each reads the input as a user's file would be read and
// goes as far with it as the programs do. InputError is the one exception that may come out.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace sailor::fuzz {

using Target = std::function<void(const std::string& input)>;
const std::map<std::string, Target>& targets();  // by name

// Ends the program: something that the programs rely on does not hold.
[[noreturn]] void broken(const std::string& what);

}  // namespace sailor::fuzz
