// The frame of every page that the planner writes: one look, light and dark, fit for paper and for narrow
// screens. Self-contained: no script, no network. Pure.
#pragma once

#include <string>

namespace sailor {

// A whole document. `title` is plain text; `body` is HTML that the caller has escaped. The style knows the
// classes `wide` (scrolls by itself when it is wider than the page); of cells `text` (not a number), `long`
// (broken into lines), `ours`; and `bad`, `good` and `aside`.
std::string html_page(const std::string& title, const std::string& body);

}  // namespace sailor
