// The filters of texts and numbers (filters.cpp), and those of sequences (sequence_filters.cpp).
#pragma once

#include <vector>

#include "trainer/data/tokenize/jinja/builtins.h"

namespace sailor::jinja {

const std::vector<Builtin>& text_filters();
const std::vector<Builtin>& sequence_filters();

}  // namespace sailor::jinja
