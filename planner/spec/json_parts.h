// The parts of a large JSON file that a program is going to read, so that it does not pay for the rest.
//
//     // {"model": {"type": {...}, "other type": {...}}, "other model": {...}}
//     std::string text = keep_json_parts(read_text_file(file), [&](const JsonPath& path) {
//       return path.size() == 1 ? (path[0] == model ? JsonPart::members : JsonPart::nothing) : ...;
//     });
//     Document document = parse_json(text, file);    // lines are those of the file
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sailor {

using JsonPath = std::vector<std::string_view>;  // keys from the root object down, as written

// whole: keep the value. members: ask for each of its members (a value that is no object is kept whole).
// nothing: write null in its place.
enum class JsonPart { whole, members, nothing };

// The same JSON text with null where `wanted` says nothing; every key stays, and every line break. What is
// left out is not checked beyond where it ends. Text that is not JSON comes back as it is from where it goes
// wrong, for the parser to refuse. Objects below a level of 64 are kept whole.
std::string keep_json_parts(std::string_view json, const std::function<JsonPart(const JsonPath&)>& wanted);

}  // namespace sailor
