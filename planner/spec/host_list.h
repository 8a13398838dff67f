// Slurm's host lists as text: `h[1-3,7]` is h1, h2, h3, h7. Pure.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Larger host lists are an error, as in Slurm.
inline constexpr int kMostHosts = 65536;

// The names of `list` in its order: names separated by commas, each with any number of brackets with numbers
// and ranges. The first number of a range sets the minimum width: `h[01-10]` is h01 to h10. Of several
// brackets the last varies fastest. Throws InputError, without a place, if the text is not a host list or has
// more than kMostHosts names. Repeated names are returned as often as they occur.
std::vector<std::string> expand_host_list(const std::string& list);

}  // namespace sailor
