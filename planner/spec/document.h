// A YAML or JSON file as a tree that records positions, so that every error can name file and line.
//
// Both formats give the same tree, and both are read strictly. Errors are: duplicate keys, explicit YAML
// tags, several YAML documents in one file, more than kMaxDepth levels or kMaxNodes nodes, more than
// kMaxCopies nodes in anchors and aliases, and an empty file. field.h reads values out of the tree. Immutable
// after parsing; thread-safe for reading. Fields and node addresses are valid while the Document lives and is
// not moved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sailor {

struct DocumentEntry;

struct DocumentNode {
  enum class Kind { null, scalar, sequence, map };

  Kind kind = Kind::null;
  bool is_string = false;               // scalar written in quotes (in JSON: a string)
  int line = 0;                         // counts from 1
  std::string scalar;                   // text as written, quotes and escapes resolved
  std::vector<DocumentEntry> children;  // in file order; keys are empty in a sequence

  const DocumentNode* find(std::string_view key) const;  // nullptr when absent or not a map
};

struct DocumentEntry {
  std::string key;
  int key_line = 0;
  DocumentNode node;
};

struct Document {
  enum class Format { yaml, json };
  static constexpr int kMaxDepth = 64;
  static constexpr int kMaxNodes = 1'000'000;
  static constexpr int kMaxCopies = 100'000;

  Format format = Format::yaml;
  std::string file;
  DocumentNode root;

  // Dotted path of a node of this document, such as `nodes[2].gpus`; empty for the root.
  std::string path_of(const DocumentNode& node) const;
};

// `text` must have passed require_text(). Throw InputError with file and line.
Document parse_yaml(std::string_view text, const std::string& file_name);
Document parse_json(std::string_view text, const std::string& file_name);

}  // namespace sailor
