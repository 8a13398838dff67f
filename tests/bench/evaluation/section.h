// A section of the evaluation: text, tables and pictures, in order. Sections become the page, the Markdown,
// and a file per table and per picture.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tests/bench/evaluation/result_table.h"

namespace sailor::bench {

struct Paragraph {
  std::string text;
};
struct Picture {
  std::string name;  // of its file, without the ending
  std::string svg;
};

// Text of a section without scenarios.
inline constexpr const char* kNotAskedFor = "No scenario of this section was selected.";

struct Section {
  std::string id;  // of its heading on the page
  std::string title;
  std::vector<std::variant<Paragraph, ResultTable, Picture>> parts;

  void say(std::string text) { parts.emplace_back(Paragraph{std::move(text)}); }
  // Tables without rows are omitted.
  void show(ResultTable table) {
    if (!table.rows.empty()) parts.emplace_back(std::move(table));
  }
  void show(std::string name, std::string svg) {
    parts.emplace_back(Picture{std::move(name), std::move(svg)});
  }
};

// Writes DIRECTORY/index.html, paper.md, and a .csv per table and a .svg per picture; creates the directory.
// Throws std::runtime_error naming the file that cannot be written.
void write_sections(const std::string& title, const std::vector<Section>& sections,
                    const std::string& directory);

}  // namespace sailor::bench
