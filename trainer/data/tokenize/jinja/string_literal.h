// Texts in quotation marks within a template, with the escape sequences of Python. Pure.
#pragma once

#include <string>
#include <string_view>

namespace sailor::jinja {

// `literal` is without its quotation marks. Throws TemplateError for \N, surrogates and incomplete sequences.
std::string decode_string_literal(std::string_view literal);

}  // namespace sailor::jinja
