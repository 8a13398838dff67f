#include "tests/bench/evaluation/section.h"

#include <fmt/format.h>

#include <filesystem>

#include "planner/report/html_parts.h"
#include "planner/report/timeline_pipelines.h"
#include "planner/spec/text_file.h"

namespace sailor::bench {
namespace {

// One part of a section, as HTML and Markdown.
struct Rendering {
  std::string& html;
  std::string& markdown;

  void operator()(const Paragraph& paragraph) {
    html += html_paragraph(paragraph.text);
    markdown += paragraph.text + "\n\n";
  }
  void operator()(const ResultTable& table) {
    html += to_html(table);
    markdown += to_markdown(table) + "\n";
  }
  void operator()(const Picture& picture) {
    html += "<div>\n" + picture.svg + "</div>\n";
    markdown += fmt::format("![{0}]({0}.svg)\n\n", picture.name);
  }
};

}  // namespace

void write_sections(const std::string& title, const std::vector<Section>& sections,
                    const std::string& directory) {
  std::filesystem::create_directories(directory);
  std::string html = "<p>";
  std::string markdown = "# " + title + "\n\n";
  for (const Section& section : sections)
    html += fmt::format("{}<a href=\"#{}\">{}</a>", &section == &sections.front() ? "" : " &#183; ",
                        section.id, xml_escaped(section.title));
  html += "</p>\n";
  for (const Section& section : sections) {
    html += fmt::format("<section>\n<h2 id=\"{}\">{}</h2>\n", section.id, xml_escaped(section.title));
    markdown += "## " + section.title + "\n\n";
    for (const auto& part : section.parts) {
      std::visit(Rendering{html, markdown}, part);
      if (const auto* table = std::get_if<ResultTable>(&part))
        write_file_atomically(fmt::format("{}/{}.csv", directory, table->name), to_csv(*table));
      if (const auto* picture = std::get_if<Picture>(&part))
        write_file_atomically(fmt::format("{}/{}.svg", directory, picture->name), picture->svg);
    }
    html += "</section>\n";
  }
  write_file_atomically(directory + "/paper.md", markdown);
  write_file_atomically(directory + "/index.html", html_page(title, "", html));
}

}  // namespace sailor::bench
