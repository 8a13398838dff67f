// The large values of tokenizer.json, vocabulary and merges, for which the strict reader
// (planner/spec/document.h) has no room.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "planner/spec/field.h"

namespace sailor {

// `model` of the file with its `vocab` and `merges` alone; null if there is none or the text is no JSON.
// Numbers with a fraction have the value that the tokenizers library reads: not always the nearest one, which
// decides between divisions of a text with equal scores.
nlohmann::json parse_tables(std::string_view text);
// The file's text with null for these two.
std::string without_tables(std::string_view text);

// A value of `tables`; null if absent.
const nlohmann::json& table_of(const nlohmann::json& tables, const char* key);
// An error in one, at the line of `model`: `model.KEY: WHAT`.
[[noreturn]] void fail_table(const Field& model, const std::string& key, const std::string& what);

// The value of a number in JSON as Rust's serde_json computes it: the digits as an integer, divided by or
// multiplied with a power of ten.
double serde_number(std::string_view text);

}  // namespace sailor
