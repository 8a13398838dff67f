// Chat templates: a strict subset of Jinja, rendered as the transformers library renders it.
//
// That is: Jinja with trim_blocks, lstrip_blocks, loop controls and a sandbox in which nothing changes but
// namespaces; the filter tojson writes plain JSON; `{% generation %}` encloses answers. What the subset lacks
// is an error when the template is parsed. Neither time nor memory of a rendering depend on trust in the
// template (error.h). Unlike in Jinja, a text that `safe` marked has no methods. Immutable and thread-safe.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/data/tokenize/jinja/value.h"

namespace sailor::jinja {

struct Program;

struct RenderedText {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> generated;  // bytes [begin, end) of generation blocks
};

class Template {
 public:
  // `file` is for messages. Throws InputError with the line in the template.
  Template(std::string_view source, std::string file);

  bool has_generation() const;
  // `now` is for strftime_now. Throws InputError with the line: an error of the template's own
  // (raise_exception), or one in it.
  RenderedText render(const std::vector<std::pair<std::string, Value>>& variables, const std::tm& now) const;

 private:
  std::string file_;
  std::shared_ptr<const Program> program_;
};

}  // namespace sailor::jinja
