// Parts of the project's pages: the frame with its style, tables, and the sections about a plan and its
// prediction. Pages have no script and load nothing; they follow the reader's colour scheme, fit narrow
// screens and print. Internal to planner/report. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/simulator/prediction.h"
#include "planner/simulator/timeline.h"

namespace sailor {

// A whole page. Cells that a caller makes may have the classes `word` (not a number), `long` (wrapped),
// `ours`, `good`, `bad` and `aside`. `title` and `below`, the line under the heading, are plain text; `body`
// is HTML.
std::string html_page(const std::string& title, const std::string& below, const std::string& body);

// Cells are HTML. `head` is the header row; without one the table is a list of names and values, whose cells
// wrap on narrow screens.
using HtmlRow = std::vector<std::string>;
std::string html_table(const HtmlRow& head, const std::vector<HtmlRow>& rows);
// Content that may be wider than the screen; it scrolls by itself.
std::string html_wide(const std::string& content);
std::string html_section(const std::string& heading, const std::string& content);
std::string html_paragraph(const std::string& text);
// A text cell, which may wrap.
std::string html_text(const std::string& text);
// "12 %" with a bar of that length; `bad`: marked as too high.
std::string html_part(double part);
// "1.2 s", "35 ms", "80 us", "0".
std::string seconds_text(double s);

std::string html_plan(const Plan& plan, const Prediction& prediction);
std::string html_prediction(const Prediction& prediction);
// Empty if there are no `timelines` (not every cost model has them).
std::string html_timeline(const Plan& plan, const Prediction& prediction,
                          const std::vector<Timeline>& timelines);
// A row per stage of each kind of pipelines: memory by source; times of one microbatch.
std::string html_memory(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines);
std::string html_stages(const Plan& plan, const Prediction& prediction,
                        const std::vector<Timeline>& timelines);

}  // namespace sailor
