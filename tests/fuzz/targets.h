// The fuzz targets: one function per kind of input. Each reads the input like a user's file and processes it
// as far as the programs do. InputError is the only allowed exception.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace sailor::fuzz {

using Target = std::function<void(const std::string& input)>;
const std::map<std::string, Target>& targets();  // by name

// Ends the program: an invariant of the programs is violated.
[[noreturn]] void broken(const std::string& what);
// The same, unless a person can read this text of an error: one line that fits a screen.
void check_error_text(const std::string& text);

}  // namespace sailor::fuzz
