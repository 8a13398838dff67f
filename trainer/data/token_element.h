// The types in which files store tokens. Values are little-endian and may be unaligned. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sailor {

enum class TokenElement { u8, i8, u16, i16, u32, i32, u64, i64 };

std::size_t bytes_of(TokenElement element);

// By NumPy's name: `uint16`.
std::optional<TokenElement> token_element(std::string_view name);

// Values of 64 bits without sign become negative from 2^63 on.
void copy_tokens(TokenElement element, const unsigned char* from, int64_t count, int64_t* out);

}  // namespace sailor
