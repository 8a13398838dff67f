// Builds a Document from parse events. The YAML and the JSON reader share it, so that both are equally
// strict. Internal to planner/spec.
#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "planner/spec/document.h"

namespace sailor {

class DocumentBuilder {
 public:
  explicit DocumentBuilder(Document& document) : document_(document) {}

  // A value at `line`. Inside a map, key() must have been called first.
  void scalar(std::string text, bool is_string, int line);
  void null(int line);
  void begin(DocumentNode::Kind kind, int line);
  // Ends the innermost map or sequence and returns it.
  const DocumentNode& end();
  void key(std::string text, int line);
  // Inserts a copy of a finished subtree (a YAML alias).
  void copy(const DocumentNode& subtree, int line);

  // Counts a copy of a subtree for an anchor or an alias; fails when there are too many.
  void count_copy(const DocumentNode& subtree, int line);

  bool in_map() const { return !open_.empty() && open_.back().node->kind == DocumentNode::Kind::map; }
  const DocumentNode& last() const { return *last_; }
  [[noreturn]] void fail(int line, const std::string& what) const;

 private:
  struct Open {
    DocumentNode* node;
    std::unordered_set<std::string> keys;
  };
  DocumentNode& add(DocumentNode::Kind kind, int line);
  void count(const DocumentNode& subtree, int line, int depth);

  Document& document_;
  std::vector<Open> open_;
  DocumentNode* last_ = nullptr;
  int nodes_ = 0;
  int copies_ = 0;
};

}  // namespace sailor
