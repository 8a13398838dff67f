// A section of the evaluation: what is said, tables and pictures, in order. The same sections become the
// page, the Markdown, and a file per table and per picture.
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

// What a section says that has nothing to show.
inline constexpr const char* kNotAskedFor = "No scenario of this section is among those that were asked for.";

struct Section {
  std::string id;  // of its heading on the page
  std::string title;
  std::vector<std::variant<Paragraph, ResultTable, Picture>> parts;

  void say(std::string text) { parts.emplace_back(Paragraph{std::move(text)}); }
  // What has no rows is left out.
  void show(ResultTable table) {
    if (!table.rows.empty()) parts.emplace_back(std::move(table));
  }
  void show(std::string name, std::string svg) {
    parts.emplace_back(Picture{std::move(name), std::move(svg)});
  }
};

// Writes DIRECTORY/index.html, paper.md, and a .csv per table and a .svg per picture; makes the directory.
// Throws std::runtime_error naming the file that cannot be written.
void write_sections(const std::string& title, const std::vector<Section>& sections,
                    const std::string& directory);

}  // namespace sailor::bench
