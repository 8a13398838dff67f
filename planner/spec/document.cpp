#include "planner/spec/document.h"

#include <fmt/format.h>

#include "planner/spec/text.h"

namespace sailor {
namespace {

bool find_path(const DocumentNode& at, const DocumentNode& target, std::string& path) {
  if (&at == &target) return true;
  for (size_t i = 0; i < at.children.size(); ++i) {
    size_t length = path.size();
    if (at.kind == DocumentNode::Kind::sequence) {
      path += fmt::format("[{}]", i);
    } else {
      std::string key = in_quotes(at.children[i].key);
      key.pop_back();
      if (!path.empty()) path += '.';
      path.append(key, 1);
    }
    if (find_path(at.children[i].node, target, path)) return true;
    path.resize(length);
  }
  return false;
}

}  // namespace

const DocumentNode* DocumentNode::find(std::string_view key) const {
  if (kind != Kind::map) return nullptr;
  for (const DocumentEntry& entry : children) {
    if (entry.key == key) return &entry.node;
  }
  return nullptr;
}

std::string Document::path_of(const DocumentNode& node) const {
  std::string path;
  find_path(root, node, path);
  return path;
}

}  // namespace sailor
