// Renders chat templates for templates_check.py: reads a line of JSON {"template", "variables"} from standard
// input and writes one,
// {"text", "generated"} or {"error"}, until the input ends. Offsets are in code points.
#include <iostream>
#include <nlohmann/json.hpp>

#include "planner/spec/error.h"
#include "trainer/data/tokenize/jinja/json_value.h"
#include "trainer/data/tokenize/jinja/python_text.h"
#include "trainer/data/tokenize/jinja/template.h"

int main() {
  using namespace sailor;
  using Json = nlohmann::json;
  std::tm now{};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_wday = 5;
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      const jinja::Value request = jinja::parse_json_value(line);
      std::vector<std::pair<std::string, jinja::Value>> variables;
      for (const auto& [name, value] : request.dictionary()->find("variables")->dictionary()->entries)
        variables.emplace_back(name.text(), value);
      const jinja::Template chat(request.dictionary()->find("template")->text(), "template");
      const jinja::RenderedText rendered = chat.render(variables, now);
      answer["text"] = rendered.text;
      answer["generated"] = Json::array();
      const auto characters = [&](std::size_t bytes) {
        return jinja::count_code_points(std::string_view(rendered.text).substr(0, bytes));
      };
      for (const auto& [begin, end] : rendered.generated)
        answer["generated"].push_back({characters(begin), characters(end)});
    } catch (const InputError& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << '\n';
  }
}
