// The key by which the parts of tokenizer.json say what they are.
#pragma once

#include "planner/spec/field.h"

namespace sailor {

// `type` of an object, whose other keys depend on it. Throws InputError.
inline Field type_of(const Field& field) {
  if (!field.is_map()) field.fail_type("an object");
  const DocumentNode* type = field.node().find("type");
  if (!type) field.fail("has no `type`");
  return {field.document(), *type};
}

}  // namespace sailor
