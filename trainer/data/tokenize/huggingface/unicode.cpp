#include "trainer/data/tokenize/huggingface/unicode.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>

#include <limits>

#include "planner/spec/error.h"

namespace sailor {
namespace {

int32_t checked_size(std::size_t size) {
  if (size > static_cast<std::size_t>(std::numeric_limits<int32_t>::max()) / 4)
    throw InputError("a document is larger than 512 MiB; split it");
  return static_cast<int32_t>(size);
}

bool in_category(char32_t c, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}

}  // namespace

std::u16string to_utf16(std::string_view utf8) {
  std::u16string text(utf8.size(), u'\0');  // never more units than bytes
  int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strFromUTF8WithSub(text.data(), checked_size(text.size()), &length, utf8.data(),
                       checked_size(utf8.size()), 0xfffd, nullptr, &status);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

std::string to_utf8(std::u16string_view text) {
  std::string utf8(3 * text.size(), '\0');
  int32_t length = 0;
  UErrorCode status = U_ZERO_ERROR;
  u_strToUTF8WithSub(utf8.data(), checked_size(utf8.size()), &length, text.data(), checked_size(text.size()),
                     0xfffd, nullptr, &status);
  utf8.resize(static_cast<std::size_t>(length));
  return utf8;
}

char32_t next_code_point(std::u16string_view text, std::size_t& at) {
  UChar32 c = 0;
  U16_NEXT(text.data(), at, text.size(), c);
  return static_cast<char32_t>(c);
}

void append_code_point(std::u16string& text, char32_t c) {
  if (U_IS_BMP(static_cast<UChar32>(c))) {
    text += static_cast<char16_t>(c);
  } else {
    text += static_cast<char16_t>(U16_LEAD(c));
    text += static_cast<char16_t>(U16_TRAIL(c));
  }
}

bool is_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}
bool is_word(char32_t c) {
  return u_isUAlphabetic(static_cast<UChar32>(c)) ||
         in_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_JOIN_CONTROL);
}
bool is_number(char32_t c) {
  return in_category(c, U_GC_N_MASK);
}
bool is_punctuation(char32_t c) {
  constexpr char32_t kCanadianChiSign = 0x166d, kSharadaSandhiMark = 0x111c9;
  if (c == kCanadianChiSign) return true;  // of another category since
  if (c == kSharadaSandhiMark) return true;
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return in_category(c, U_GC_P_MASK) && age[0] <= 8;
}

}  // namespace sailor
