// Quantities with units in files and options. Every function takes the whole text, and returns nothing unless
// it is exactly one quantity of that kind. A plain number is in the base unit. Results are finite. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace sailor {

// A decimal number without surrounding text; rejects nan, inf, hexadecimal and overflow.
std::optional<double> parse_number(std::string_view text);
// `80GiB` (powers of 1024), `40GB` (powers of 1000), `512 MiB`, `1024` -> bytes.
std::optional<double> parse_bytes(std::string_view text);
// `1555GB/s`, `12 GiB/s` (bytes), `400Gb/s`, `10 Gbit/s` (bits) -> bytes per second.
std::optional<double> parse_rate(std::string_view text);
// `12h`, `90s`, `500ms`, `1h30m`, `2d`, and Slurm's `HH:MM:SS` and `D-HH:MM:SS` -> seconds.
std::optional<double> parse_duration(std::string_view text);
// `1.2`, `1.2 USD`, `$1.2` -> US dollars.
std::optional<double> parse_money(std::string_view text);
// `50kJ`, `3 MJ`, `0.2kWh`, `1200` -> joules.
std::optional<double> parse_energy(std::string_view text);

}  // namespace sailor
