// Which names a block knows before it assigns them, by the rules of Jinja, which decides that when it
// compiles: a name whose first use in a block is an assignment is a variable of the block, and not defined
// until then, even for blocks within it that are executed earlier.
#pragma once

#include "trainer/data/tokenize/jinja/parser.h"

namespace sailor::jinja {

// Fills `unset` of the program and of its statements.
void find_unset_names(Program& program);

}  // namespace sailor::jinja
