// All model families of the program, one line each. NAME has a function NAME_family() in
// planner/spec/families/NAME.cpp (ModelFamily). The family's name in job specs has `-` instead of `_`.
#pragma once

#define SAILOR_MODEL_FAMILIES(FAMILY) \
  FAMILY(gpt2)                        \
  FAMILY(opt)                         \
  FAMILY(gpt_neo)                     \
  FAMILY(llama)                       \
  FAMILY(gpt_neox)                    \
  FAMILY(mistral)                     \
  FAMILY(qwen2)                       \
  FAMILY(qwen3)                       \
  FAMILY(gemma)                       \
  FAMILY(gemma2)                      \
  FAMILY(gemma3)                      \
  FAMILY(olmo2)                       \
  FAMILY(phi3)                        \
  FAMILY(granite)                     \
  FAMILY(glm)                         \
  FAMILY(glm4)                        \
  FAMILY(starcoder2)                  \
  FAMILY(falcon)
