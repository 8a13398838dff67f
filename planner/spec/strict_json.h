// nlohmann's JSON with numbers that convert only to integers that hold them. Its own conversions take 1e300
// for an int, which C++ leaves undefined, and 3000000000 for -1294967296. For files and messages whose values
// are used as they are.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace sailor {

template <class T, class = void>
struct StrictNumbers : nlohmann::adl_serializer<T> {};

template <class T>
struct StrictNumbers<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  template <class Json>
  static void to_json(Json& json, T value) {
    nlohmann::to_json(json, value);
  }
  // Throws std::runtime_error.
  template <class Json>
  static void from_json(const Json& json, T& value) {
    if (const auto* number = json.template get_ptr<const typename Json::number_unsigned_t*>()) {
      if (std::in_range<T>(*number)) return void(value = static_cast<T>(*number));
    } else if (const auto* number = json.template get_ptr<const typename Json::number_integer_t*>()) {
      if (std::in_range<T>(*number)) return void(value = static_cast<T>(*number));
    }
    throw std::runtime_error(json.dump() + " is not a whole number in its range");
  }
};

using StrictJson = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                                        double, std::allocator, StrictNumbers>;

}  // namespace sailor
