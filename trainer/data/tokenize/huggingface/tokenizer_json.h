// Tokenizers in the format of Hugging Face's tokenizers library (tokenizer.json).
//
// The tokens of a text are those that the library gives for it, special tokens around it included. Text that
// is no UTF-8 is read as Python's decode(errors='replace') does. Characters have the classes of ICU's Unicode
// release, which may be older or newer than the library's.
#pragma once

#include <memory>
#include <string>

#include "trainer/data/tokenize/tokenizer.h"

namespace sailor {

// `end_of_document` is the text of the token behind every document; empty = `eos_token` of
// tokenizer_config.json next to the file, if there is one. Throws InputError naming file, line and key: no
// tokenizer.json, or something in it that is not supported.
std::unique_ptr<Tokenizer> load_tokenizer_json(const std::string& path,
                                               const std::string& end_of_document = "");

}  // namespace sailor
