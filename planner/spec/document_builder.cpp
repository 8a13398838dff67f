#include "planner/spec/document_builder.h"

#include <utility>

#include "planner/spec/error.h"
#include "planner/spec/text.h"

namespace sailor {

void DocumentBuilder::fail(int line, const std::string& what) const {
  throw InputError({document_.file, line}, what);
}

DocumentNode& DocumentBuilder::add(DocumentNode::Kind kind, int line) {
  if (++nodes_ > Document::kMaxNodes) fail(line, "too many values, this is not a file of this kind");
  if (static_cast<int>(open_.size()) >= Document::kMaxDepth) fail(line, "nested too deeply");
  DocumentNode* node = &document_.root;
  if (!open_.empty()) {
    DocumentNode& parent = *open_.back().node;
    // key() has already made the entry of a map.
    if (parent.kind == DocumentNode::Kind::sequence) parent.children.emplace_back();
    node = &parent.children.back().node;
  }
  node->kind = kind;
  node->line = line;
  last_ = node;
  return *node;
}

void DocumentBuilder::scalar(std::string text, bool is_string, int line) {
  DocumentNode& node = add(DocumentNode::Kind::scalar, line);
  node.scalar = std::move(text);
  node.is_string = is_string;
}

void DocumentBuilder::null(int line) {
  add(DocumentNode::Kind::null, line);
}

// Addresses of open nodes stay valid: a parent's children grow only after its last child was closed.
void DocumentBuilder::begin(DocumentNode::Kind kind, int line) {
  open_.push_back({&add(kind, line), {}});
}

const DocumentNode& DocumentBuilder::end() {
  last_ = open_.back().node;
  open_.pop_back();
  return *last_;
}

void DocumentBuilder::key(std::string text, int line) {
  Open& map = open_.back();
  if (!map.keys.insert(text).second) fail(line, "duplicate key " + in_quotes(text));
  map.node->children.push_back({std::move(text), line, {}});
}

void DocumentBuilder::count_copy(const DocumentNode& subtree, int line) {
  if (++copies_ > Document::kMaxCopies) fail(line, "aliases expand to too many values");
  for (const DocumentEntry& entry : subtree.children) count_copy(entry.node, line);
}

void DocumentBuilder::count(const DocumentNode& subtree, int line, int depth) {
  if (++nodes_ > Document::kMaxNodes) fail(line, "too many values, this is not a file of this kind");
  if (depth > Document::kMaxDepth) fail(line, "nested too deeply");
  for (const DocumentEntry& entry : subtree.children) count(entry.node, line, depth + 1);
}

void DocumentBuilder::copy(const DocumentNode& subtree, int line) {
  count_copy(subtree, line);
  count(subtree, line, static_cast<int>(open_.size()) + 1);
  DocumentNode copied = subtree;
  add(subtree.kind, line) = std::move(copied);
}

}  // namespace sailor
