// Reduces a large JSON file to the parts that a program reads, so that it does not parse the rest.
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

// whole: keep the value. members: ask for each of its members (a value that is not an object is kept whole).
// nothing: replace it by null.
enum class JsonPart { whole, members, nothing };

// The same JSON text with null for the parts where `wanted` returns nothing; all keys and line breaks stay.
// Omitted parts are only checked for where they end. From the first error in invalid JSON on, the text is
// returned unchanged, for the parser to reject. Objects below level 64 are kept whole.
std::string keep_json_parts(std::string_view json, const std::function<JsonPart(const JsonPath&)>& wanted);

}  // namespace sailor
