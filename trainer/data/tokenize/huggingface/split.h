// Splits the pieces of a segment at the matches of a pattern.
#pragma once

#include <string>
#include <vector>

#include "trainer/data/tokenize/huggingface/pattern.h"
#include "trainer/data/tokenize/huggingface/segment.h"

namespace sailor {

// What becomes of a match: dropped, a piece of its own, part of the piece before or after it, one piece with
// the matches next to it.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

// `field` has the behavior's name as in tokenizer.json.
SplitBehavior read_split_behavior(const Field& field);

// With `inverted`, the text between matches takes the place of the matches.
void split(Segment& segment, const FindMatches& find, SplitBehavior behavior, bool inverted = false);

}  // namespace sailor
