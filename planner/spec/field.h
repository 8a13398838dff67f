// Typed reading of a Document. Every reader returns a value in range, or throws InputError with file, line,
// dotted key and the expected value. Unknown keys are errors that name the nearest known one.
//
//     Document document = parse_yaml(text, "job.yaml");
//     MapField map(Field(document), {"layers", "name"});     // throws on any other key
//     int layers = map.required("layers").integer<int>(1, 100000);
//     if (auto name = map.optional("name")) spec.name = name->text();
//
// Field and MapField are views: the Document must outlive them and must not move.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/spec/document.h"
#include "planner/spec/error.h"

namespace sailor {

class Field {
 public:
  explicit Field(const Document& document) : Field(document, document.root) {}
  Field(const Document& document, const DocumentNode& node) : document_(&document), node_(&node) {}

  // An integer in [min, max].
  template <typename T = int64_t>
  T integer(T min, T max) const {
    return static_cast<T>(integer_between(min, max));
  }
  double number(double min, double max) const;  // finite, in [min, max]
  double number() const;                        // finite
  double positive() const;                      // > 0
  double non_negative() const;                  // >= 0
  bool boolean() const;                         // true | false
  std::string text() const;                     // not empty
  std::string text_or_empty() const;
  // A name for tables and file names: at most 200 characters, without spaces and control characters.
  std::string name() const;
  // Index of the word in `words`.
  size_t choice(const std::vector<std::string>& words) const;

  // Quantities (quantity.h), >= 0.
  int64_t bytes() const;
  double bytes_per_s() const;
  double duration_s() const;
  double usd() const;
  // Any other quantity, > 0; `expected` is for the message.
  double quantity_above_0(std::optional<double> (*parse)(std::string_view), const char* expected) const;

  std::vector<Field> items() const;                            // of a sequence
  std::vector<std::pair<std::string, Field>> entries() const;  // of a map whose keys are data
  bool is_map() const { return node_->kind == DocumentNode::Kind::map; }
  bool is_sequence() const { return node_->kind == DocumentNode::Kind::sequence; }

  const DocumentNode& node() const { return *node_; }
  const Document& document() const { return *document_; }
  Where where() const { return {document_->file, node_->line}; }
  // Throws InputError at this field: `PATH: WHAT`.
  [[noreturn]] void fail(const std::string& what) const;
  // `must be WHAT, is VALUE`.
  [[noreturn]] void fail_type(const std::string& expected) const;

 private:
  int64_t integer_between(int64_t min, int64_t max) const;
  bool is_plain_scalar() const { return node_->kind == DocumentNode::Kind::scalar && !node_->is_string; }
  double quantity(std::optional<double> (*parse)(std::string_view), const char* expected) const;

  const Document* document_;
  const DocumentNode* node_;
};

class MapField {
 public:
  // Throws when `field` is not a map or has a key that is not in `known`.
  MapField(Field field, std::vector<std::string> known);

  Field required(std::string_view key) const;                 // throws when absent
  std::optional<Field> optional(std::string_view key) const;  // nothing when absent or null
  const Field& field() const { return field_; }
  [[noreturn]] void fail(const std::string& what) const { field_.fail(what); }

 private:
  Field field_;
};

// Throws unless the top-level map has `key: VERSION`, for files that begin with e.g. `sailor_catalog: 1`.
void require_version(const MapField& map, const std::string& key, int version);

}  // namespace sailor
