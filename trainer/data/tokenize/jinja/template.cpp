#include "trainer/data/tokenize/jinja/template.h"

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/evaluator.h"
#include "trainer/data/tokenize/jinja/parser.h"

namespace sailor::jinja {

Template::Template(std::string_view source, std::string file)
    : file_(std::move(file)), program_(std::make_shared<const Program>(parse_template(source, file_))) {}

bool Template::has_generation() const {
  return program_->has_generation;
}

RenderedText Template::render(const std::vector<std::pair<std::string, Value>>& variables,
                              const std::tm& now) const {
  Scope globals(nullptr);
  for (const auto& [name, value] : variables) globals.set(name, value);
  Evaluator evaluator(*program_, globals, now);
  try {
    evaluator.run();
  } catch (const TemplateError& error) {
    throw InputError(Where{file_, evaluator.line()}, error.what());
  }
  return {evaluator.take_text(), evaluator.take_generated()};
}

}  // namespace sailor::jinja
