// All model families of the program, one line each. NAME has a function NAME_family() in
// planner/spec/families/NAME.cpp (ModelFamily) and a function build_NAME() in trainer/model/NAME.cpp. The
// family's name in job specs has `-` instead of `_`.
#pragma once

#define SAILOR_MODEL_FAMILIES(FAMILY) \
  FAMILY(gpt2)                        \
  FAMILY(opt)                         \
  FAMILY(gpt_neo)                     \
  FAMILY(llama)                       \
  FAMILY(gpt_neox)
